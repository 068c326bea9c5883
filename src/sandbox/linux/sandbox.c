/* A sandbox on Linux: an access map, what the host can do, and the plan that follows from both.
 *
 * The first launch in a process finds out whether the plan can be carried out here (launch.c). If a
 * layer turns out to be missing, mode auto compiles the next weaker plan, mode require fails. What
 * was found is kept for every later sandbox of the process.
 */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/program.h"
#include "base/str.h"
#include "sandbox/linux/launcher_path.h"
#include "sandbox/linux/placeholder_file.h"
#include "sandbox/linux/sandbox_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static struct host known_host; /* what the launches of this process have found out */
static bool is_host_known;

static bool is_managed(const struct sandbox *sandbox)
{
    return sandbox->mode != SANDBOX_DISABLED;
}

static enum access_kind kind_of(const char *path)
{
    struct err ignored;
    enum fd_kind kind;

    if (fd_kind_at(AT_FDCWD, path, &kind, &ignored) || kind == FD_MISSING || standin_file_is(path))
        return ACCESS_MISSING;
    return kind == FD_DIR ? ACCESS_DIR : ACCESS_FILE;
}

/* A name that is missing together with the folder that should hold it cannot be covered; the
 * topmost missing one can. */
static char *topmost_missing(const char *path)
{
    char *top = alloc_str(path);

    for (;;) {
        char *parent = path_parent(top);

        if (kind_of(parent) != ACCESS_MISSING) {
            free(parent);
            return top;
        }
        free(top);
        top = parent;
    }
}

static void trim_missing(struct access_map *map)
{
    for (size_t i = 0; i < map->len; i++) {
        struct access_entry *entry = &map->entries[i];

        if (entry->kind == ACCESS_MISSING && entry->access != ACCESS_WRITE) {
            char *top = topmost_missing(entry->path);

            free(entry->path);
            entry->path = top;
        }
    }
}

/* Keeps the order, on which the check for the next one relies. */
static void protect_one(struct access_map *map, const char *path)
{
    if (access_map_check(map, path) != ACCESS_WRITE)
        return;
    access_map_add(map, path, ACCESS_READ, kind_of(path), "belongs to Cordon")->is_protected = true;
    access_map_sort(map);
}

/* What the command must not change whatever the profile says, because Cordon runs or believes it
 * later, outside: the path, and what it leads to. */
static void protect_path(struct access_map *map, const char *path)
{
    AUTO_FREE char *real = path ? realpath(path, NULL) : NULL;

    if (real)
        protect_one(map, real);
    if (path && !(real && str_eq(path, real)))
        protect_one(map, path);
}

/* The programs that the running one starts, outside of every sandbox. */
static void protect_programs(struct access_map *map)
{
    AUTO(strv_done) struct strv paths = {0};

    program_add_paths(&paths);
    for (size_t i = 0; i < paths.len; i++)
        if (access_map_check(map, paths.items[i]) == ACCESS_WRITE &&
            access(paths.items[i], F_OK) == 0)
            protect_path(map, paths.items[i]);
}

static void protect_own(struct sandbox *sandbox, const char *const *own_paths)
{
    struct access_map *map = &sandbox->access;
    struct err ignored;
    AUTO_FREE char *self = program_self();

    protect_path(map, self);
    protect_programs(map);
    protect_path(map, sandbox->launcher);
    protect_path(map, standins_registry(&ignored));
    for (; own_paths && *own_paths; own_paths++)
        protect_path(map, *own_paths);
    trim_missing(map);
    access_map_sort(map);
}

/* The plan and the layers that follow from what is known of the host. */
static int sandbox_compile(struct sandbox *sandbox, struct err *err)
{
    struct plan *plan;

    if (sandbox->mode == SANDBOX_REQUIRE && *host_degradation(&sandbox->host))
        return err_set(err, ERR_UNSUPPORTED,
                       "%s, and --sandbox require accepts nothing less: "
                       "`cordon doctor` tells what to do",
                       host_degradation(&sandbox->host));
    plan = plan_compile(&sandbox->access, &sandbox->host.facts, &sandbox->options, err);
    if (!plan)
        return -1;
    plan_free(sandbox->plan);
    sandbox->plan = plan;
    standins_release(TAKE_PTR(sandbox->warm));
    host_report(&sandbox->host, plan, &sandbox->access, sandbox->options.allow_nested_namespaces,
                sandbox->layers);
    return 0;
}

static void sandbox_init_host(struct sandbox *sandbox)
{
    if (!is_host_known) {
        host_init(&known_host);
        is_host_known = true;
    }
    sandbox->host = known_host;
}

/* Bare: a launcher that waits, passes signals on and cleans up, and restricts nothing. */
static int sandbox_init_bare(struct sandbox *sandbox)
{
    host_init_bare(&sandbox->host);
    sandbox->plan = plan_new_bare();
    for (int i = 0; i < LAYER_COUNT; i++)
        sandbox->layers[i] =
            (struct layer_report){.state = LAYER_ABSENT, .why = "the sandbox is disabled"};
    sandbox->host.is_proven = true;
    return 0;
}

struct sandbox *sandbox_new(const struct sandbox_options *options, struct err *err)
{
    struct sandbox *sandbox = alloc_zero(1, sizeof *sandbox);
    int status;

    sandbox->mode = options->mode;
    sandbox->options.allow_nested_namespaces = options->allow_nested_namespaces;
    sandbox->keep_warm = options->keep_warm;
    sandbox->dies_with_thread = options->dies_with_thread;
    sandbox->on_idle = options->on_idle;
    sandbox->data = options->data;
    sandbox->launcher = options->launcher ? alloc_str(options->launcher) : launcher_path(err);
    access_map_copy(&sandbox->access, options->access);
    sandbox->inits =
        (struct init_pool){.launcher = sandbox->launcher, .keep_warm = options->keep_warm};
    if (!sandbox->launcher) {
        sandbox_free(sandbox);
        return NULL;
    }
    if (is_managed(sandbox)) {
        sandbox_init_host(sandbox);
        protect_own(sandbox, options->own_paths);
        status = sandbox_compile(sandbox, err);
    } else {
        status = sandbox_init_bare(sandbox);
    }
    if (status) {
        sandbox_free(sandbox);
        return NULL;
    }
    return sandbox;
}

void sandbox_free(struct sandbox *sandbox)
{
    if (!sandbox)
        return;
    init_pool_done(&sandbox->inits);
    standins_release(sandbox->warm);
    access_map_done(&sandbox->access);
    plan_free(sandbox->plan);
    free(sandbox->launcher);
    free(sandbox);
}

const struct layer_report *sandbox_layer(const struct sandbox *sandbox, enum layer layer)
{
    return &sandbox->layers[layer];
}

bool sandbox_is_degraded(const struct sandbox *sandbox)
{
    return *sandbox_degradation(sandbox) != '\0';
}

const char *sandbox_degradation(const struct sandbox *sandbox)
{
    return is_managed(sandbox) ? host_degradation(&sandbox->host) : "";
}

const struct plan *sandbox_plan(const struct sandbox *sandbox)
{
    return sandbox->plan;
}

const struct access_map *sandbox_access(const struct sandbox *sandbox)
{
    return &sandbox->access;
}

bool sandbox_step_down(struct sandbox *sandbox, enum plan_op op, const struct err *failure,
                       int *ret_status, struct err *err)
{
    if (!is_managed(sandbox) || sandbox->host.is_proven ||
        !host_step_down(&sandbox->host, op, failure))
        return false;
    known_host = sandbox->host;
    *ret_status = sandbox_compile(sandbox, err);
    return true;
}

void sandbox_set_proven(struct sandbox *sandbox)
{
    sandbox->host.is_proven = true;
    known_host = sandbox->host;
}

void sandbox_prepare(struct sandbox *sandbox)
{
    init_prepare(&sandbox->inits, sandbox->plan->namespaces);
}

bool sandbox_is_idle(const struct sandbox *sandbox)
{
    return sandbox->launches == 0;
}

void sandbox_cool(struct sandbox *sandbox)
{
    if (sandbox->inits.spare)
        init_leave(&sandbox->inits, TAKE_PTR(sandbox->inits.spare));
    standins_release(TAKE_PTR(sandbox->warm));
}

int sandbox_probe(struct sandbox *sandbox, struct err *err)
{
    char *const argv[] = {(char *)"probe", NULL};
    AUTO_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct launch_options options = {
        .argv = argv,
        .stdio = {null, null, null},
        .cgroup = -1,
        .cwd = "/",
        .is_probe = true,
    };
    struct launch_report report;
    struct launch launch;
    struct plan_message first;
    int status = -1;

    if (null < 0)
        return err_sys(err, "opening /dev/null");
    if (sandbox_launch(sandbox, &options, &launch, err))
        return -1;
    if (!launch_peek(&launch, &first) || launch_read(&launch, &report, err))
        err_set(err, ERR_SYSTEM, "the launcher ended without a word");
    else if (report.event == LAUNCH_FAILED)
        *err = report.failure;
    else
        status = 0;
    launch_done(&launch);
    return status;
}
