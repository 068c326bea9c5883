/* Compiling a plan: the file system, then everything else that is taken away from the command. The
 * compiler knows nothing of descriptors or system calls, and decides everything: the launcher has
 * no choice to make.
 *
 * The access map is ordered so that a directory comes before everything below it; the compiler
 * walks it once and emits an operation wherever an entry differs from what is around it:
 *
 *     around   entry    operation
 *     read     write    place a copy of the host's mounts, taken before all became read-only
 *     write    read     make it read-only in place
 *     any      deny     cover it; with a directory of ours if something below is to be seen
 *     deny     other    make the mount point in the cover, and place
 *     any      private  place a folder of the workspace's, or an empty one in memory
 *     private  other    make the mount point in that folder, keep it in place, and place
 *     any      ask      as for read, and cover it at last with a watchpoint, which can be taken away
 *
 * What is missing gets no operation: it can be neither shown nor covered. Where it must not come to
 * be, its directory is kept in place, and the guard is asked about every creation (guard_map.c). What else it is
 * asked about: plan_guard.c.
 *
 * Around the topmost entries is the base: the whole tree read-only (or writable) in place when
 * there is an entry for "/", or an empty root. Operations that have to come first because they
 * need the host's tree as it was (`held`) are collected apart and put in front.
 */
#include "sandbox/linux/plan.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "sandbox/linux/guard_map.h"
#include "sandbox/linux/landlock.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

struct compiler {
    const struct access_map *map;
    const struct plan_host *host;
    unsigned wishes;
    struct plan *plan;
    struct plan *held_devices; /* only their records are used; strings are the plan's */
    struct plan *held;
    struct plan *body;
    struct plan *seals;
    struct plan *points;
    bool *is_watched; /* by entry: shown read-only, under a watchpoint */
    enum access base;
    bool in_place; /* the host's tree stays the root */
    uint32_t slots;
    bool has_masks;
    const char *last_dir; /* the mount point made last, to not make its parents again */
    struct landlock_alone look;
};

enum { STRINGS_MAX = 8 << 20 };

/* Puts a text into the plan's strings; returns its offset. */
static uint32_t plan_intern(struct plan *plan, const char *text)
{
    size_t offset = plan->strings.len;

    if (!*text && offset)
        return 0;
    buf_append(&plan->strings, text, strlen(text) + 1);
    return (uint32_t)offset;
}

/* Appends a record without a path. */
static struct plan_record *plan_push(struct plan *plan, enum plan_op op)
{
    struct plan_record *record;

    plan->records = alloc_grow(plan->records, plan->len, &plan->cap, sizeof *plan->records);
    record = &plan->records[plan->len++];
    *record = (struct plan_record){.op = op};
    return record;
}

/* Appends a record for `path` to one of the compiler's lists. */
static struct plan_record *compiler_push(struct compiler *compiler, struct plan *list,
                                         enum plan_op op, const char *path)
{
    uint32_t offset = plan_intern(compiler->plan, path);
    struct plan_record *record = plan_push(list, op);

    record->path = offset;
    return record;
}

const char *const plan_proc_writable[] = {
    "/proc/acpi", "/proc/asound", "/proc/bus",           "/proc/fs", "/proc/irq",
    "/proc/scsi", "/proc/sys",    "/proc/sysrq-trigger", NULL,
};

const char *const plan_proc_secret[] = {
    "/proc/allocinfo",  "/proc/kpagecgroup",  "/proc/kpagecount",
    "/proc/kpageflags", "/proc/pagetypeinfo", "/proc/slabinfo",
    "/proc/timer_list", "/proc/vmallocinfo",  NULL,
};

static const char *const own_devices[] = {
    "/dev/null", "/dev/zero",    "/dev/full", "/dev/random", "/dev/urandom",
    "/dev/tty",  "/dev/console", "/dev/pts",  "/dev/shm",    "/dev/mqueue",
};

static bool is_device_path(const char *path)
{
    return path_is_within(path, "/dev") && !str_eq(path, "/dev");
}

/* /dev and /proc are always ours; what the map grants of them is granted by what ours hold. */
static bool is_ignored(const struct access_entry *entry)
{
    const char *path = entry->path;

    if (entry->access == ACCESS_DENY)
        return false;
    return path_is_within(path, "/proc") || str_eq(path, "/dev") ||
           path_is_within(path, "/dev/shm") || path_is_within(path, "/dev/pts") ||
           path_is_within(path, "/dev/mqueue");
}

/* What is below the watchpoint, if there is one. */
static enum access compiler_access(const struct compiler *compiler, size_t index)
{
    return compiler->is_watched[index] ? ACCESS_READ : compiler->map->entries[index].access;
}

/* What decides about the directory that holds entry `index`. Nothing is in our /dev but what is put
 * there, nor is anything of the host in a private folder. */
static enum access compiler_access_around(const struct compiler *compiler, size_t index)
{
    const struct access_map *map = compiler->map;
    const char *path = map->entries[index].path;

    if (is_device_path(path))
        return ACCESS_DENY;
    while (index-- > 0)
        if (path_is_within(path, map->entries[index].path))
            return map->entries[index].source ? ACCESS_DENY : compiler_access(compiler, index);
    return compiler->base;
}

static bool has_visible_descendant(const struct compiler *compiler, size_t index)
{
    const struct access_map *map = compiler->map;
    const char *path = map->entries[index].path;

    for (size_t i = index + 1; i < map->len && path_is_within(map->entries[i].path, path); i++)
        if (compiler_access(compiler, i) != ACCESS_DENY && map->entries[i].kind != ACCESS_MISSING)
            return true;
    return false;
}

/* Was `path` (or something below it) the mount point made last? Then it exists. */
static bool is_made(const struct compiler *compiler, const char *path)
{
    return compiler->last_dir && path_is_within(compiler->last_dir, path);
}

/* Makes the directories between the cover (or the empty root, or the private folder) `top` and `path`,
 * which excludes both. Those in a private folder could be renamed, and what is mounted below with
 * them: they are mount points, too. */
static void compile_parents(struct compiler *compiler, const char *top, const char *path)
{
    const bool is_private = access_map_is_private(compiler->map, top);
    const bool is_cover = top[1] && !str_eq(top, "/dev") && !is_private;
    uint64_t mode = is_cover ? 0111 : 0755; /* a cover shows nothing */
    const char *slash = path + (top[1] ? strlen(top) + 1 : 1);

    while ((slash = strchr(slash, '/'))) {
        AUTO_FREE char *parent = alloc_strn(path, (size_t)(slash - path));

        if (!is_made(compiler, parent)) {
            compiler_push(compiler, compiler->body, PLAN_DIR, parent)->value = mode;
            if (is_private)
                compiler_push(compiler, compiler->body, PLAN_PIN, parent);
        }
        slash++;
    }
}

/* The cover (or the empty root, or the private folder) that hides entry `index`: the nearest denied
 * directory that is not itself in a denied one. */
static const char *cover_path(const struct compiler *compiler, size_t index)
{
    const struct access_entry *entries = compiler->map->entries;
    const char *path = entries[index].path;

    if (is_device_path(path))
        return "/dev";
    while (index-- > 0)
        if (path_is_within(path, entries[index].path) &&
            (entries[index].source ||
             compiler_access(compiler, index) != compiler_access_around(compiler, index)))
            return entries[index].path;
    return "/";
}

/* Makes something visible (again) at the entry's path. */
static void compile_show(struct compiler *compiler, size_t index, bool is_covered)
{
    const struct access_entry *entry = &compiler->map->entries[index];
    bool is_device = is_device_path(entry->path);
    uint32_t flags = compiler_access(compiler, index) == ACCESS_READ ? PLAN_FLAG_READ_ONLY : 0;
    struct plan_record *record;

    if (is_covered) {
        compile_parents(compiler, cover_path(compiler, index), entry->path);
        compiler_push(compiler, compiler->body, entry->kind == ACCESS_FILE ? PLAN_FILE : PLAN_DIR,
                      entry->path)
            ->value = entry->kind == ACCESS_FILE ? 0444 : 0755;
        compiler->last_dir = entry->path;
    }
    if (entry->source && !*entry->source) {
        compiler_push(compiler, compiler->body, PLAN_MEMORY, entry->path);
        return;
    }
    if (!compiler->in_place && !is_device && !entry->source) {
        compiler_push(compiler, compiler->body, PLAN_BIND, entry->path)->flags = flags;
        return;
    }
    compiler_push(compiler, is_device ? compiler->held_devices : compiler->held, PLAN_HOLD,
                  entry->source ? entry->source : entry->path)
        ->slot = compiler->slots;
    record = compiler_push(compiler, compiler->body, PLAN_PLACE, entry->path);
    record->flags = flags;
    record->slot = compiler->slots++;
}

/* The topmost directory of the writable region that entry `index` lies in: where a mount of ours
 * is, or the root. */
static const char *region_path(const struct compiler *compiler, size_t index)
{
    const struct access_map *map = compiler->map;
    const char *path = map->entries[index].path;
    const char *top = "/";

    while (index-- > 0) {
        if (!path_is_within(path, map->entries[index].path))
            continue;
        if (map->entries[index].source || map->entries[index].access != ACCESS_WRITE)
            break;
        top = map->entries[index].path;
    }
    return top;
}

/* A directory between a writable one and something that is narrower below it must not be renamed,
 * or the next command would find the narrower thing under a name that nothing says anything about.
 * A mount point cannot be renamed. */
static void compile_pins(struct compiler *compiler, size_t index)
{
    const char *top = region_path(compiler, index);
    const char *path = compiler->map->entries[index].path;
    const char *slash = path + (top[1] ? strlen(top) + 1 : 1);

    while ((slash = strchr(slash, '/'))) {
        AUTO_FREE char *parent = alloc_strn(path, (size_t)(slash - path));

        if (!is_made(compiler, parent))
            compiler_push(compiler, compiler->body, PLAN_PIN, parent);
        slash++;
    }
    compiler->last_dir = path;
}

static void compile_deny(struct compiler *compiler, size_t index)
{
    const struct access_entry *entry = &compiler->map->entries[index];

    if (compiler->host->has_around && !has_visible_descendant(compiler, index) &&
        compiler->host->is_held(entry->path, true))
        return;
    if (entry->kind == ACCESS_DIR && has_visible_descendant(compiler, index)) {
        compiler_push(compiler, compiler->seals, PLAN_SEAL, entry->path);
        compiler->last_dir = NULL;
        compiler_push(compiler, compiler->body, PLAN_MASK_TREE, entry->path);
        return;
    }
    compiler->has_masks = true;
    compiler_push(compiler, compiler->body, PLAN_MASK, entry->path)->flags =
        entry->kind != ACCESS_DIR ? PLAN_FLAG_FILE
        : entry->is_others_tmp
            ? PLAN_FLAG_LISTED /* who looks through a home finds nothing, and goes on */
            : 0;
}

/* Narrower than what is around it, which is writable: it has to stay where it is. */
static void compile_below_writable(struct compiler *compiler, size_t index)
{
    const struct access_entry *entry = &compiler->map->entries[index];

    compile_pins(compiler, index);
    if (entry->kind == ACCESS_MISSING)
        return; /* the guard keeps it from being made */
    if (compiler_access(compiler, index) == ACCESS_DENY)
        compile_deny(compiler, index);
    else
        compiler_push(compiler, compiler->body, PLAN_READ_ONLY, entry->path);
}

static void compile_entry(struct compiler *compiler, size_t index)
{
    const struct access_entry *entry = &compiler->map->entries[index];
    enum access access = compiler_access(compiler, index);
    enum access parent = compiler_access_around(compiler, index);

    if (entry->access == ACCESS_DENY && is_device_path(entry->path)) {
        /* Denied although it is one of ours, which every command gets? */
        for (size_t i = 0; i < sizeof own_devices / sizeof *own_devices; i++)
            if (str_eq(entry->path, own_devices[i]))
                compile_deny(compiler, index);
        return;
    }
    if (entry->source) { /* also where as much may be done around it */
        if (parent == ACCESS_WRITE)
            compile_pins(compiler, index);
        compile_show(compiler, index, parent == ACCESS_DENY);
        return;
    }
    if (str_eq(entry->path, "/") || is_ignored(entry) || access == parent)
        return;
    if (parent == ACCESS_WRITE) {
        compile_below_writable(compiler, index);
        return;
    }
    if (entry->kind == ACCESS_MISSING)
        return; /* nothing to show, and it cannot be made in a directory that is not writable */
    if (access == ACCESS_DENY)
        compile_deny(compiler, index);
    else
        compile_show(compiler, index, parent == ACCESS_DENY);
}

/* Why there are none at all; NULL. */
static const char *without_watchpoints(const struct compiler *compiler)
{
    const struct plan_host *host = compiler->host;

    if (!(compiler->wishes & PLAN_FACTS))
        return "nothing is watched";
    if (!host->has_listener)
        return "no guard can be asked";
    if (!(host->namespaces & CLONE_NEWNS) || !(host->namespaces & CLONE_NEWUSER))
        return "there is no user namespace";
    return host->has_fuse ? NULL : "";
}

/* What lies in the watched place would have to be found through it. */
static const char *without_watchpoint(const struct compiler *compiler, size_t index)
{
    const struct access_map *map = compiler->map;
    const char *path = map->entries[index].path;

    if (path_is_within(path, "/dev") || path_is_within(path, "/proc") ||
        path_is_within(path, "/sys"))
        return "devices and the kernel's own files are not asked about";
    if (has_visible_descendant(compiler, index))
        return "something below one is to be seen";
    for (size_t i = 0; i < index; i++)
        if (compiler->is_watched[i] && path_is_within(path, map->entries[i].path))
            return "one lies in another";
    return compiler->plan->watchpoints < GUARD_WATCHPOINTS_MAX ? NULL : "there are too many";
}

static void choose_watchpoints(struct compiler *compiler)
{
    const char *no_one = without_watchpoints(compiler);

    for (size_t i = 0; i < compiler->map->len; i++) {
        const struct access_entry *entry = &compiler->map->entries[i];
        const char *why = no_one;

        if (!entry->asks || entry->access != ACCESS_DENY || entry->kind == ACCESS_MISSING)
            continue;
        if (!why)
            why = without_watchpoint(compiler, i);
        compiler->is_watched[i] = !why;
        compiler->plan->watchpoints += !why;
        if (!compiler->plan->no_watchpoint)
            compiler->plan->no_watchpoint = why;
    }
}

/* Last, so that no other mount has to be found through one. */
static void compile_watchpoint(struct compiler *compiler, size_t index)
{
    const struct access_entry *entry = &compiler->map->entries[index];
    struct plan_record *record;

    compiler_push(compiler, compiler->held_devices, PLAN_HOLD_FUSE, "")->slot = compiler->slots;
    record = compiler_push(compiler, compiler->points, PLAN_WATCHPOINT, entry->path);
    record->slot = compiler->slots++;
    record->value = index;
    record->flags = entry->kind == ACCESS_DIR ? 0 : PLAN_FLAG_FILE;
}

static void compile_links(struct compiler *compiler)
{
    for (size_t i = 0; i < compiler->map->links_len; i++) {
        const struct access_link *link = &compiler->map->links[i];
        const struct access_entry *entry = access_map_find(compiler->map, link->path);
        struct plan_record *record;
        uint32_t target;

        if (entry && entry->source)
            ; /* a private folder does not have it */
        else if (compiler->in_place ||
                 (entry && compiler_access(compiler, (size_t)(entry - compiler->map->entries)) !=
                               ACCESS_DENY))
            continue; /* it is there with the directory that holds it */
        compile_parents(compiler, entry ? entry->path : "/", link->path);
        target = plan_intern(compiler->plan, link->target);
        record = compiler_push(compiler, compiler->body, PLAN_LINK, link->path);
        record->other = target;
    }
}

static void plan_append(struct plan *to, const struct plan *from)
{
    for (size_t i = 0; i < from->len; i++)
        *plan_push(to, (enum plan_op)from->records[i].op) = from->records[i];
}

/* The operations on the file system, complete and in order: what does not depend on the entries,
 * around what does. */
static void compile_file_system(struct compiler *compiler)
{
    struct plan *plan = compiler->plan;
    const struct plan_host *host = compiler->host;

    for (size_t i = 0; i < compiler->map->len; i++) {
        compile_entry(compiler, i);
        if (compiler->is_watched[i])
            compile_watchpoint(compiler, i);
    }
    compiler_push(compiler, plan, PLAN_TREE_PRIVATE, "");
    compiler_push(compiler, plan, PLAN_HOLD_DEVICES, "");
    plan_append(plan, compiler->held_devices);
    compiler_push(compiler, plan, PLAN_TREE_HARDEN, "");
    plan_append(plan, compiler->held);
    if (compiler->in_place && compiler->base == ACCESS_READ)
        compiler_push(compiler, plan, PLAN_TREE_READ_ONLY, "");
    if (!compiler->in_place) {
        compiler_push(compiler, plan, PLAN_EMPTY_ROOT, "");
        compiler_push(compiler, plan, PLAN_DIR, "/dev")->value = 0755;
        compiler_push(compiler, plan, PLAN_DIR, "/proc")->value = 0755;
    }
    compile_links(compiler);
    if (compiler->has_masks || (host->has_proc && host->proc_masked && host->proc_masked[0]))
        compiler_push(compiler, plan, PLAN_MASKS, "");
    compiler_push(compiler, plan, PLAN_DEV, "");
    if (host->namespaces & CLONE_NEWIPC)
        compiler_push(compiler, plan, PLAN_QUEUES, "");
    if (host->has_proc)
        compiler_push(compiler, plan, PLAN_PROC, "");
    else if (!compiler->in_place)
        compiler_push(compiler, plan, PLAN_BIND, "/proc")->flags = PLAN_FLAG_READ_ONLY;
    if (host->has_proc && host->is_root) { /* who owns files whose only guard is their owner */
        for (size_t i = 0; host->proc_read_only && host->proc_read_only[i]; i++)
            compiler_push(compiler, plan, PLAN_READ_ONLY, host->proc_read_only[i]);
        for (size_t i = 0; host->proc_masked && host->proc_masked[i]; i++)
            compiler_push(compiler, plan, PLAN_MASK, host->proc_masked[i])->flags = PLAN_FLAG_FILE;
    }
    plan_append(plan, compiler->body);
    plan_append(plan, compiler->seals);
    plan_append(plan, compiler->points);
    if (!compiler->in_place) {
        compiler_push(compiler, plan, PLAN_SEAL, "/");
        compiler_push(compiler, plan, PLAN_ENTER_ROOT, "");
    }
}

static struct landlock_spec landlock_spec_of(const struct compiler *compiler)
{
    const struct plan_host *host = compiler->host;

    return (struct landlock_spec){
        .abi = host->landlock,
        .has_mounts = host->namespaces & CLONE_NEWNS,
        .refuses_tcp =
            !network_is_hosts(compiler->map->network) && !(host->namespaces & CLONE_NEWNET),
        .allow_nested_namespaces = compiler->wishes & PLAN_NESTED_NAMESPACES,
        .list_dirs = host->has_listener || host->has_around ? NULL : host->list_dirs,
        .alone =
            compiler->wishes & PLAN_ALONE || (host->has_around && !(host->namespaces & CLONE_NEWNS))
                ? &compiler->look
                : NULL,
    };
}

static void compile_landlock(struct compiler *compiler)
{
    struct landlock_spec spec = landlock_spec_of(compiler);
    struct landlock_rules rules = {0};
    struct plan_record *record;

    if (!landlock_compile(compiler->map, &spec, &rules))
        return;
    record = plan_push(compiler->plan, PLAN_LANDLOCK);
    record->value = rules.handled;
    record->other = (uint32_t)rules.handled_network;
    record->flags = (uint32_t)rules.scopes;
    for (size_t i = 0; i < rules.len; i++) {
        record = compiler_push(compiler, compiler->plan, PLAN_LANDLOCK_RULE, rules.items[i].path);
        record->value = rules.items[i].rights;
        record->flags = !rules.items[i].is_child ? 0
                        : rules.items[i].is_file ? PLAN_FLAG_FILE
                                                 : PLAN_FLAG_DIRECTORY;
    }
    landlock_rules_done(&rules);
}

/* What the guard has to know of the sandbox beside its map. */
static uint32_t guard_flags(const struct compiler *compiler, const struct seccomp_spec *spec)
{
    const struct landlock_spec landlock = landlock_spec_of(compiler);
    const bool has_landlock = landlock_guards_names(compiler->map, &landlock);

    return (compiler->wishes & PLAN_EXEC ? GUARD_MAP_EXEC : 0u) |
           (compiler->wishes & PLAN_JUDGE ? GUARD_MAP_JUDGE : 0u) |
           (compiler->wishes & PLAN_NESTED_NAMESPACES ? GUARD_MAP_NESTED : 0u) |
           (compiler->host->namespaces & CLONE_NEWNS ? GUARD_MAP_OWN_MOUNTS : 0u) |
           (spec->asks_facts ? GUARD_MAP_FACTS : 0u) |
           (compiler->map->network == NETWORK_PROXIED ? GUARD_MAP_PROXIED : 0u) |
           (plan_is_led(compiler->map, compiler->host) ? GUARD_MAP_LED : 0u) |
           (network_is_hosts(compiler->map->network) ? GUARD_MAP_SHARED : 0u) |
           (spec->asks_sockets ? GUARD_MAP_SOCKETS : 0u) | (spec->performs ? GUARD_MAP_ALONE : 0u) |
           (spec->asks_names && !has_landlock ? GUARD_MAP_NO_LANDLOCK : 0u);
}

static void compile_seccomp(struct compiler *compiler)
{
    const struct plan_host *host = compiler->host;
    struct plan *plan = compiler->plan;
    struct seccomp_spec spec = {
        .arch = host->arch,
        .sockets = SECCOMP_SOCKETS_INTERNET,
        .has_pid_namespace = host->namespaces & CLONE_NEWPID,
        .has_mount_namespace = host->namespaces & CLONE_NEWNS,
        .has_ipc_namespace = host->namespaces & CLONE_NEWIPC,
        .is_root = host->is_root,
        .allow_nested_namespaces = compiler->wishes & PLAN_NESTED_NAMESPACES,
    };

    if (network_is_hosts(compiler->map->network))
        spec.sockets =
            compiler->map->network == NETWORK_HOST ? SECCOMP_SOCKETS_UNIX : SECCOMP_SOCKETS_SHARED;
    else if (!(host->namespaces & CLONE_NEWNET))
        spec.sockets = SECCOMP_SOCKETS_NONE;
    plan_ask_guard(compiler->map, host, compiler->wishes, &spec);
    plan->asks_guard = spec.asks_names || spec.asks_facts || spec.asks_sockets || spec.asks_exec;
    plan->guard_flags = plan->asks_guard ? guard_flags(compiler, &spec) : 0;
    plan->tells_around = !host->has_listener && host->has_around;
    plan->filters_len = seccomp_compile(&spec, plan->filters);
    plan_push(plan, PLAN_SECCOMP)->flags = plan->asks_guard     ? PLAN_FLAG_LISTENER
                                           : plan->tells_around ? PLAN_FLAG_AROUND
                                                                : 0;
}

static int compile_all(struct compiler *compiler, struct err *err)
{
    struct plan *plan = compiler->plan;
    const struct plan_host *host = compiler->host;
    const struct access_map *map = compiler->map;

    compiler->base = map->len && str_eq(map->entries[0].path, "/") ? map->entries[0].access
                     : map->restricted                             ? ACCESS_DENY
                                                                   : ACCESS_WRITE;
    compiler->in_place = compiler->base != ACCESS_DENY;
    if (plan_check(map, host, compiler->wishes, err))
        return -1;
    choose_watchpoints(compiler);
    plan->namespaces = host->namespaces;
    if (network_is_hosts(map->network))
        plan->namespaces &= ~(uint32_t)CLONE_NEWNET;
    if (plan->namespaces)
        plan_push(plan, PLAN_NAMESPACES)->value = plan->namespaces;
    if (plan->namespaces & CLONE_NEWUSER)
        plan_push(plan, PLAN_IDENTITY);
    for (const char *const *layer = host->layers; layer && *layer; layer++)
        compiler_push(compiler, plan, PLAN_LAYER, *layer);
    if (plan->namespaces & CLONE_NEWNET)
        plan_push(plan, PLAN_LOOPBACK);
    if (map->network == NETWORK_PROXIED)
        plan_push(plan, PLAN_LEAD);
    plan->redirects = map->network == NETWORK_PROXIED && host->has_redirect;
    if (plan->redirects)
        plan_push(plan, PLAN_REDIRECT);
    if (plan->namespaces & CLONE_NEWNS)
        compile_file_system(compiler);
    if (compiler->slots > PLAN_MAX_SLOTS)
        return err_set(err, ERR_LIMIT, "more than %d directories to be made visible apart",
                       PLAN_MAX_SLOTS);
    plan_push(plan, PLAN_SESSION_KEYRING);
    plan_push(plan, PLAN_DROP);
    compile_landlock(compiler);
    compile_seccomp(compiler);
    return 0;
}

struct plan *plan_new(void)
{
    struct plan *plan = alloc_zero(1, sizeof *plan);

    buf_init(&plan->strings, STRINGS_MAX);
    buf_append(&plan->strings, "", 1);
    return plan;
}

void plan_free(struct plan *plan)
{
    if (!plan)
        return;
    free(plan->records);
    buf_done(&plan->strings);
    free(plan);
}

struct plan *plan_compile(const struct access_map *map, const struct plan_host *host,
                          unsigned wishes, struct err *err)
{
    struct compiler compiler = {
        .map = map,
        .host = host,
        .wishes = wishes,
        .plan = plan_new(),
        .held_devices = plan_new(),
        .held = plan_new(),
        .body = plan_new(),
        .seals = plan_new(),
        .points = plan_new(),
        .is_watched = alloc_zero(map->len + 1, sizeof(bool)),
        .look = {.list_dirs = host->list_dirs,
                 .list_files = host->list_files,
                 .is_held = host->has_around ? host->is_held : NULL},
    };
    int status = compile_all(&compiler, err);

    plan_free(compiler.held_devices);
    plan_free(compiler.held);
    plan_free(compiler.body);
    plan_free(compiler.seals);
    plan_free(compiler.points);
    free(compiler.is_watched);
    if (status) {
        plan_free(compiler.plan);
        return NULL;
    }
    return compiler.plan;
}
