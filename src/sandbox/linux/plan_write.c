/* A plan as text for people, as JSON for programs, and as the file that the launcher reads. */
#include "base/json.h"
#include "sandbox/linux/plan.h"

#include <sched.h>
#include <string.h>

static const char *const op_names[PLAN_OP_COUNT] = {
    [PLAN_NAMESPACES] = "namespaces",
    [PLAN_IDENTITY] = "keep-identity",
    [PLAN_PIDS] = "limit-pids",
    [PLAN_TREE_PRIVATE] = "tree-private",
    [PLAN_HOLD_DEVICES] = "hold-devices",
    [PLAN_HOLD_FUSE] = "hold-fuse",
    [PLAN_HOLD] = "hold",
    [PLAN_TREE_HARDEN] = "tree-no-devices-no-setuid",
    [PLAN_TREE_READ_ONLY] = "tree-read-only",
    [PLAN_EMPTY_ROOT] = "empty-root",
    [PLAN_MASKS] = "prepare-masks",
    [PLAN_DEV] = "minimal-dev",
    [PLAN_QUEUES] = "own-queues",
    [PLAN_PROC] = "own-proc",
    [PLAN_DIR] = "make-folder",
    [PLAN_FILE] = "make-file",
    [PLAN_LINK] = "make-link",
    [PLAN_PLACE] = "place",
    [PLAN_BIND] = "bind",
    [PLAN_MEMORY] = "in-memory",
    [PLAN_PIN] = "pin",
    [PLAN_READ_ONLY] = "read-only",
    [PLAN_MASK] = "mask",
    [PLAN_WATCHPOINT] = "watchpoint",
    [PLAN_MASK_TREE] = "mask-tree",
    [PLAN_SEAL] = "seal",
    [PLAN_ENTER_ROOT] = "enter-root",
    [PLAN_LOOPBACK] = "loopback-up",
    [PLAN_LEAD] = "lead-to-proxy",
    [PLAN_LAYER] = "layer",
    [PLAN_REDIRECT] = "redirect",
    [PLAN_SESSION_KEYRING] = "new-session-keyring",
    [PLAN_DROP] = "drop-privileges",
    [PLAN_LIMIT] = "limit",
    [PLAN_LANDLOCK] = "landlock",
    [PLAN_LANDLOCK_RULE] = "landlock-allow",
    [PLAN_SECCOMP] = "seccomp",
};

static const struct {
    uint32_t flag;
    const char *name;
} namespace_names[] = {
    {CLONE_NEWUSER, "user"},     {CLONE_NEWNS, "mount"}, {CLONE_NEWPID, "pid"},
    {CLONE_NEWIPC, "ipc"},       {CLONE_NEWNET, "net"},  {CLONE_NEWUTS, "uts"},
    {CLONE_NEWCGROUP, "cgroup"},
};

enum { NAMESPACES = sizeof namespace_names / sizeof *namespace_names };

const char *plan_op_name(enum plan_op op)
{
    return (unsigned)op < PLAN_OP_COUNT ? op_names[op] : "unknown";
}

static const char *text_of(const struct plan *plan, uint32_t offset)
{
    return plan->strings.data + offset;
}

static bool has_slot(const struct plan_record *record)
{
    return record->op == PLAN_HOLD || record->op == PLAN_PLACE || record->op == PLAN_HOLD_FUSE ||
           record->op == PLAN_WATCHPOINT;
}

static void print_record(const struct plan *plan, const struct plan_record *record, struct buf *ret)
{
    const char *path = text_of(plan, record->path);

    buf_append_str(ret, plan_op_name((enum plan_op)record->op));
    for (size_t i = 0; record->op == PLAN_NAMESPACES && i < NAMESPACES; i++)
        if (record->value & namespace_names[i].flag)
            buf_appendf(ret, " %s", namespace_names[i].name);
    if (*path)
        buf_appendf(ret, " %s", path);
    if (record->op == PLAN_LINK)
        buf_appendf(ret, " -> %s", text_of(plan, record->other));
    if (has_slot(record))
        buf_appendf(ret, " slot=%u", record->slot);
    if (record->op == PLAN_DIR || record->op == PLAN_FILE)
        buf_appendf(ret, " mode=%04o", (unsigned)record->value);
    if (record->op == PLAN_LANDLOCK)
        buf_appendf(ret, " files=0x%llx network=0x%x scopes=0x%x",
                    (unsigned long long)record->value, record->other, record->flags);
    if (record->op == PLAN_LANDLOCK_RULE)
        buf_appendf(ret, " rights=0x%llx", (unsigned long long)record->value);
    if (record->op == PLAN_SECCOMP)
        buf_appendf(ret, " instructions=%zu%s", plan->filters_len,
                    plan->asks_guard ? " asks the guard" : "");
    if (record->op == PLAN_PLACE || record->op == PLAN_BIND)
        buf_append_str(ret, record->flags & PLAN_FLAG_READ_ONLY ? " read-only" : " read-write");
    if (record->op == PLAN_MASK || record->op == PLAN_WATCHPOINT)
        buf_append_str(ret, record->flags & PLAN_FLAG_FILE     ? " file"
                            : record->flags & PLAN_FLAG_LISTED ? " empty folder"
                                                               : " folder");
    buf_append_str(ret, "\n");
}

void plan_print(const struct plan *plan, struct buf *ret)
{
    for (size_t i = 0; i < plan->len; i++)
        print_record(plan, &plan->records[i], ret);
}

static json_t *record_to_json(const struct plan *plan, const struct plan_record *record)
{
    const char *path = text_of(plan, record->path);
    json_t *json = json_object();

    json_object_set_new(json, "op", json_string(plan_op_name((enum plan_op)record->op)));
    if (*path)
        json_object_set_new(json, "path", json_lossy(path));
    if (record->op == PLAN_NAMESPACES)
        json_object_set_new(json, "namespaces", json_array());
    for (size_t i = 0; record->op == PLAN_NAMESPACES && i < NAMESPACES; i++)
        if (record->value & namespace_names[i].flag)
            json_array_append_new(json_object_get(json, "namespaces"),
                                  json_string(namespace_names[i].name));
    if (record->op == PLAN_LINK)
        json_object_set_new(json, "target", json_lossy(text_of(plan, record->other)));
    if (has_slot(record))
        json_object_set_new(json, "slot", json_integer(record->slot));
    if (record->op == PLAN_PLACE || record->op == PLAN_BIND)
        json_object_set_new(json, "readOnly", json_boolean(record->flags & PLAN_FLAG_READ_ONLY));
    if (record->op == PLAN_LANDLOCK || record->op == PLAN_LANDLOCK_RULE)
        json_object_set_new(json, "rights", json_integer((json_int_t)record->value));
    if (record->op == PLAN_SECCOMP) {
        json_object_set_new(json, "instructions", json_integer((json_int_t)plan->filters_len));
        json_object_set_new(json, "asksGuard", json_boolean(plan->asks_guard));
    }
    return json;
}

json_t *plan_to_json(const struct plan *plan)
{
    json_t *list = json_array();

    for (size_t i = 0; i < plan->len; i++)
        json_array_append_new(list, record_to_json(plan, &plan->records[i]));
    return list;
}

/* Appends a run of strings behind the plan's own; returns the offset of the first, which is the end
 * of the table, and refused by the launcher, when that does not fit. `base` is where
 * the string table starts in `out`. */
static uint32_t write_strings(struct buf *out, size_t base, char *const *items, uint32_t *ret_count)
{
    size_t offset = out->len - base;
    uint32_t count = 0;

    for (; items && items[count]; count++)
        if (!buf_append(out, items[count], strlen(items[count]) + 1))
            break;
    *ret_count = count;
    return items && *items ? (uint32_t)offset : 0;
}

/* Records, with the command's limits first: they are put on before the filters that could forbid
 * it. Returns their number. */
static uint32_t write_records(const struct plan *plan, const struct plan_command *command,
                              struct buf *out)
{
    buf_append(out, command->limits, command->limits_len * sizeof *command->limits);
    buf_append(out, plan->records, plan->len * sizeof *plan->records);
    return (uint32_t)(command->limits_len + plan->len);
}

static size_t strings_size(char *const *items)
{
    size_t size = 0;

    for (; items && *items; items++)
        size += strlen(*items) + 1;
    return size;
}

int plan_encode(const struct plan *plan, const struct plan_command *command, struct buf *ret,
                struct err *err)
{
    struct plan_header header = {
        .magic = PLAN_MAGIC,
        .version = PLAN_VERSION,
        .filters = (uint32_t)plan->filters_len,
        .flags = command->flags,
    };
    size_t argv_size = strings_size(command->argv);
    size_t env_size = strings_size(command->env);
    char *const program[] = {(char *)command->program, NULL};
    char *const cwd[] = {(char *)command->cwd, NULL};
    uint32_t one;
    size_t strings;

    if (argv_size + env_size > PLAN_MAX_BYTES / 2)
        return err_set(err, ERR_LIMIT,
                       "arguments of %zu and an environment of %zu bytes: at most "
                       "%d together",
                       argv_size, env_size, PLAN_MAX_BYTES / 2);
    buf_init(ret, PLAN_MAX_BYTES);
    buf_append(ret, &header, sizeof header);
    header.records = write_records(plan, command, ret);
    buf_append(ret, plan->filters, plan->filters_len * sizeof *plan->filters);
    strings = ret->len;
    buf_append(ret, plan->strings.data, plan->strings.len);
    header.program = write_strings(ret, strings, program, &one);
    header.cwd = write_strings(ret, strings, cwd, &one);
    header.argv = write_strings(ret, strings, command->argv, &header.argc);
    header.envp = write_strings(ret, strings, command->env, &header.envc);
    header.strings = (uint32_t)(ret->len - strings);
    header.bytes = (uint32_t)ret->len;
    memcpy(ret->data, &header, sizeof header);
    if (header.records > PLAN_MAX_RECORDS) {
        buf_done(ret);
        return err_set(err, ERR_LIMIT, "a plan of %u operations: at most %d", header.records,
                       PLAN_MAX_RECORDS);
    }
    return 0;
}
