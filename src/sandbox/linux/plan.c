/* Compiling a plan: the file system (plan_files.c), then everything else that is taken away from
 * the command. The compiler knows nothing of descriptors or system calls, and decides everything:
 * the launcher has no choice to make.
 */
#include "sandbox/linux/plan.h"

#include "base/alloc.h"
#include "base/path.h"
#include "base/str.h"
#include "sandbox/linux/compiler.h"
#include "sandbox/linux/landlock.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { STRINGS_MAX = 8 << 20 };

uint32_t plan_intern(struct plan *plan, const char *text)
{
    size_t offset = plan->strings.len;

    if (!*text && offset)
        return 0;
    buf_append(&plan->strings, text, strlen(text) + 1);
    return (uint32_t)offset;
}

struct plan_record *plan_push(struct plan *plan, enum plan_op op)
{
    struct plan_record *record;

    plan->records = alloc_grow(plan->records, plan->len, &plan->cap, sizeof *plan->records);
    record = &plan->records[plan->len++];
    *record = (struct plan_record){.op = op};
    return record;
}

struct plan_record *compiler_push(struct compiler *compiler, struct plan *list, enum plan_op op,
                                  const char *path)
{
    uint32_t offset = plan_intern(compiler->plan, path);
    struct plan_record *record = plan_push(list, op);

    record->path = offset;
    return record;
}

static void compile_landlock(struct compiler *compiler, const struct plan_options *options)
{
    struct landlock_spec spec = {
        .abi = compiler->host->landlock,
        .has_mounts = compiler->host->namespaces & CLONE_NEWNS,
        .refuses_tcp = compiler->map->network != NETWORK_ENABLED &&
                       !(compiler->host->namespaces & CLONE_NEWNET),
        .allow_nested_namespaces = options->allow_nested_namespaces,
    };
    struct landlock_rules rules = {0};
    struct plan_record *record;

    if (!landlock_compile(compiler->map, &spec, &rules))
        return;
    record = plan_push(compiler->plan, PLAN_LANDLOCK);
    record->value = rules.handled;
    record->other = (uint32_t)rules.handled_network;
    record->flags = (uint32_t)rules.scopes;
    for (size_t i = 0; i < rules.len; i++)
        compiler_push(compiler, compiler->plan, PLAN_LANDLOCK_RULE, rules.items[i].path)->value =
            rules.items[i].rights;
    landlock_rules_done(&rules);
}

static void compile_seccomp(struct compiler *compiler, const struct plan_options *options)
{
    const struct plan_host *host = compiler->host;
    struct seccomp_spec spec = {
        .arch = host->arch,
        .sockets = SECCOMP_SOCKETS_INTERNET,
        .has_pid_namespace = host->namespaces & CLONE_NEWPID,
        .has_mount_namespace = host->namespaces & CLONE_NEWNS,
        .has_ipc_namespace = host->namespaces & CLONE_NEWIPC,
        .is_root = host->is_root,
        .allow_nested_namespaces = options->allow_nested_namespaces,
    };

    if (compiler->map->network == NETWORK_ENABLED)
        spec.sockets = SECCOMP_SOCKETS_UNIX;
    else if (!(host->namespaces & CLONE_NEWNET))
        spec.sockets = SECCOMP_SOCKETS_NONE;
    compiler->plan->filters_len = seccomp_compile(&spec, compiler->plan->filters);
    plan_push(compiler->plan, PLAN_SECCOMP);
}

/* Landlock adds up rights from the root down and cannot take any away again, so it alone can
 * express a map only when no entry is narrower than the one around it. */
static int check_without_mounts(const struct compiler *compiler, struct err *err)
{
    static const char remedy[] = "enable user namespaces (`cordon doctor` tells how), choose "
                                 "--profile read-only, or accept no sandbox with "
                                 "--sandbox disabled";

    for (size_t i = 0; i < compiler->map->len; i++) {
        const struct access_entry *entry = &compiler->map->entries[i];

        if (entry->access >= compiler_access_around(compiler, i))
            continue;
        return err_set(err, ERR_UNSUPPORTED, "without namespaces %.60s%s cannot be kept %s: %s",
                       strlen(entry->path) > 60 ? "..." : "",
                       entry->path + (strlen(entry->path) > 60 ? strlen(entry->path) - 60 : 0),
                       entry->access == ACCESS_DENY ? "unreadable" : "read-only", remedy);
    }
    if (compiler->host->landlock < 3 && compiler->map->restricted &&
        !access_map_full_write(compiler->map))
        return err_set(err, ERR_UNSUPPORTED, "neither namespaces nor Landlock (ABI 3): %s", remedy);
    return 0;
}

static enum access base_access(const struct access_map *map)
{
    if (map->len && str_eq(map->entries[0].path, "/"))
        return map->entries[0].access;
    return map->restricted ? ACCESS_DENY : ACCESS_WRITE;
}

static int compile_all(struct compiler *compiler, const struct plan_options *options,
                       struct err *err)
{
    struct plan *plan = compiler->plan;
    const struct plan_host *host = compiler->host;

    if (compiler->map->network == NETWORK_PROXIED)
        return err_set(
            err, ERR_UNSUPPORTED,
            "a proxied network needs the managed proxy, which this version does not have: "
            "use restricted or enabled");
    compiler->base = base_access(compiler->map);
    compiler->in_place = compiler->base != ACCESS_DENY;
    plan->namespaces = host->namespaces;
    if (compiler->map->network == NETWORK_ENABLED)
        plan->namespaces &= ~(uint32_t)CLONE_NEWNET;
    if (plan->namespaces)
        plan_push(plan, PLAN_NAMESPACES)->value = plan->namespaces;
    if (plan->namespaces & CLONE_NEWUSER)
        plan_push(plan, PLAN_IDENTITY);
    if (plan->namespaces & CLONE_NEWNET)
        plan_push(plan, PLAN_LOOPBACK);
    if (plan->namespaces & CLONE_NEWNS)
        compile_file_system(compiler);
    else if (check_without_mounts(compiler, err))
        return -1;
    if (compiler->slots > PLAN_MAX_SLOTS)
        return err_set(err, ERR_LIMIT, "more than %d folders to be made visible apart",
                       PLAN_MAX_SLOTS);
    plan_push(plan, PLAN_SESSION_KEYRING);
    plan_push(plan, PLAN_DROP);
    compile_landlock(compiler, options);
    compile_seccomp(compiler, options);
    return 0;
}

static struct plan *plan_new(void)
{
    struct plan *plan = alloc_zero(1, sizeof *plan);

    buf_init(&plan->strings, STRINGS_MAX);
    buf_append(&plan->strings, "", 1);
    return plan;
}

struct plan *plan_new_bare(void)
{
    return plan_new();
}

void plan_free(struct plan *plan)
{
    if (!plan)
        return;
    for (size_t i = 0; i < plan->standins_len; i++)
        free(plan->standins[i].path);
    free(plan->standins);
    free(plan->records);
    buf_done(&plan->strings);
    free(plan);
}

struct plan *plan_compile(const struct access_map *map, const struct plan_host *host,
                          const struct plan_options *options, struct err *err)
{
    struct compiler compiler = {
        .map = map,
        .host = host,
        .plan = plan_new(),
        .held_devices = plan_new(),
        .held = plan_new(),
        .body = plan_new(),
        .seals = plan_new(),
    };
    int status = compile_all(&compiler, options, err);

    plan_free(compiler.held_devices);
    plan_free(compiler.held);
    plan_free(compiler.body);
    plan_free(compiler.seals);
    if (status) {
        plan_free(compiler.plan);
        return NULL;
    }
    return compiler.plan;
}
