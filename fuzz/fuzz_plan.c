/* The launcher's plan reader: whatever it accepts can be used as the launcher uses it. */
#include "fuzz.h"

#include "sandbox/launcher/plan_reader.h"

#include <stdlib.h>
#include <string.h>

static volatile size_t seen;

static void touch(const char *text)
{
    seen += strlen(text);
}

static void touch_run(const struct plan_view *plan, uint32_t offset, uint32_t count)
{
    const char *text = plan_string(plan, offset);

    for (uint32_t i = 0; i < count; i++) {
        touch(text);
        if (i + 1 < count)
            text = plan_string_next(text);
    }
}

static void touch_record(const struct plan_view *plan, const struct plan_record *record)
{
    if (record->op >= PLAN_OP_COUNT || record->slot >= PLAN_MAX_SLOTS)
        abort(); /* both index tables */
    touch(plan_string(plan, record->path));
    if (record->op == PLAN_LINK)
        touch(plan_string(plan, record->other));
}

static void touch_plan(const struct plan_view *plan)
{
    const struct plan_header *header = plan->header;

    if (header->argc == 0)
        abort(); /* argv[0] is used without a look */
    for (uint32_t i = 0; i < header->records; i++)
        touch_record(plan, &plan->records[i]);
    for (uint32_t i = 0; i < header->filters; i++)
        seen += plan->filters[i].k;
    touch(plan_string(plan, header->program));
    touch(plan_string(plan, header->cwd));
    touch_run(plan, header->argv, header->argc);
    touch_run(plan, header->envp, header->envc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    void *memory = malloc(size ? size : 1); /* aligned, as the launcher's mapping is */
    struct plan_view plan;
    struct err err = {0};

    if (!memory)
        return 0;
    if (size)
        memcpy(memory, data, size);
    if (plan_view_init(&plan, memory, size, &err) == 0)
        touch_plan(&plan);
    else if (err.code == ERR_NONE || err.msg[0] == '\0')
        abort(); /* a refusal says why */
    free(memory);
    return 0;
}
