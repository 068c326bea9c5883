/* Reading a plan: everything is checked first, so that the code that acts on it has no error to
 * expect from the plan itself. The reader is fuzzed (fuzz/fuzz_plan.c). */
#include "sandbox/launcher/plan_reader.h"

#include <stdbool.h>
#include <string.h>

static int plan_check_counts(const struct plan_header *header, size_t bytes, struct err *err)
{
    uint64_t need = sizeof *header;

    if (header->magic != PLAN_MAGIC || header->version != PLAN_VERSION)
        return err_set(err, ERR_INVALID, "not a plan of this version of Cordon");
    if (header->records > PLAN_MAX_RECORDS || header->filters > PLAN_MAX_FILTERS ||
        header->argc > PLAN_MAX_ARGS || header->envc > PLAN_MAX_ARGS)
        return err_set(err, ERR_INVALID, "the plan's counts are out of bounds");
    need += (uint64_t)header->records * sizeof(struct plan_record);
    need += (uint64_t)header->filters * sizeof(struct plan_filter);
    need += header->strings;
    if (header->bytes != bytes || need != bytes || header->strings == 0)
        return err_set(err, ERR_INVALID, "the plan's size does not match its counts");
    if (header->argc == 0)
        return err_set(err, ERR_INVALID, "the plan has no command");
    return 0;
}

/* `count` strings that follow each other from `offset` on lie inside the table. */
static bool plan_has_strings(const struct plan_view *plan, uint32_t offset, uint32_t count)
{
    const char *end = plan->strings + plan->header->strings;
    const char *next = plan->strings + offset;

    if (offset >= plan->header->strings)
        return false;
    for (; count; count--) {
        const char *nul = next < end ? memchr(next, '\0', (size_t)(end - next)) : NULL;

        if (!nul)
            return false;
        next = nul + 1;
    }
    return true;
}

int plan_view_init(struct plan_view *ret, const void *memory, size_t bytes, struct err *err)
{
    struct plan_view plan = {.header = memory};
    const struct plan_header *header = memory;

    if (bytes < sizeof *header || bytes > PLAN_MAX_BYTES)
        return err_set(err, ERR_INVALID, "a plan of %zu bytes", bytes);
    if (plan_check_counts(header, bytes, err))
        return -1;
    plan.records = (const void *)(header + 1);
    plan.filters = (const void *)(plan.records + header->records);
    plan.strings = (const char *)(plan.filters + header->filters);
    if (plan.strings[0] != '\0' || plan.strings[header->strings - 1] != '\0')
        return err_set(err, ERR_INVALID, "the plan's strings have no end");
    for (uint32_t i = 0; i < header->records; i++) {
        const struct plan_record *record = &plan.records[i];

        if (record->op >= PLAN_OP_COUNT || record->slot >= PLAN_MAX_SLOTS ||
            record->path >= header->strings ||
            (record->op == PLAN_LINK && record->other >= header->strings))
            return err_set(err, ERR_INVALID, "record %u of the plan is malformed", i);
    }
    if (header->program >= header->strings || header->cwd >= header->strings ||
        !plan_has_strings(&plan, header->argv, header->argc) ||
        !plan_has_strings(&plan, header->envp, header->envc))
        return err_set(err, ERR_INVALID, "the plan's command is malformed");
    *ret = plan;
    return 0;
}

const char *plan_string(const struct plan_view *plan, uint32_t offset)
{
    return plan->strings + offset;
}

const char *plan_string_next(const char *text)
{
    return text + strlen(text) + 1;
}
