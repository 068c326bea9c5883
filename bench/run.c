/* Running one program, bare or in a sandbox, as the measurements want it: nothing is read, nothing
 * is looked up, and whatever goes wrong ends the benchmark. */
#include "bench.h"

#include "base/auto.h"
#include "base/strv.h"
#include "layer/layer.h"
#include "policy/host_view.h"
#include "policy/profile.h"
#include "policy/resolve.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char home[PATH_MAX]; /* HOME=DIR, of bench/main.c's move_home() */
static char *const environment[] = {(char *)"PATH=/usr/local/bin:/usr/bin:/bin",
                                    (char *)"GIT_OPTIONAL_LOCKS=0", home, (char *)"LANG=C", NULL};

void bench_fail(const char *fmt, ...)
{
    va_list args;

    fputs("bench: ", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

void bench_check(int status, const struct err *err)
{
    if (status)
        bench_fail("%s", err->msg);
}

static char *const *run_environment(void)
{
    snprintf(home, sizeof home, "HOME=%s", getenv("HOME"));
    return environment;
}

void run_bare(const struct bench *bench, const char *const *argv)
{
    run_bare_with(bench, argv, run_environment());
}

static pid_t spawn(const struct bench *bench, const char *const *argv, char *const *env,
                   const int stdio[3])
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int error;

    posix_spawn_file_actions_init(&actions);
    for (int fd = 0; fd < 3; fd++)
        posix_spawn_file_actions_adddup2(&actions, stdio[fd], fd);
    posix_spawn_file_actions_addchdir_np(&actions, bench->ws);
    error = posix_spawn(&pid, argv[0], &actions, NULL, (char *const *)argv, env);
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        bench_fail("%s: %s", argv[0], strerror(error));
    return pid;
}

pid_t run_spawn(const struct bench *bench, const char *const *argv, int in, int out)
{
    return spawn(bench, argv, run_environment(), (const int[3]){in, out, bench->null});
}

void run_bare_with(const struct bench *bench, const char *const *argv, char *const *env)
{
    pid_t pid = spawn(bench, argv, env, (const int[3]){bench->null, bench->null, bench->null});
    int status;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status)
        bench_fail("%s ended with status %#x", argv[0], (unsigned)status);
}

static struct sandbox *open_with(const struct bench *bench, bool cache_idle, unsigned exclude,
                                 struct layer *layer)
{
    AUTO(access_map_done) struct access_map map = {0};
    AUTO(profile_done) struct profile profile;
    char *const roots[] = {bench->ws, NULL};
    struct profile_workspace workspace = {.network = NETWORK_RESTRICTED, .exclude = exclude};
    struct resolve_context context = {.view = &host_view_real, .workspace_roots = roots};
    struct sandbox_options options = {
        .mode = SANDBOX_REQUIRE,
        .view = layer ? layer_view(layer) : NULL,
        .access = &map,
        .cache_idle = cache_idle,
        .watch = WATCH_FACTS,
        .launcher = bench->launcher,
    };
    struct sandbox *sandbox;
    struct err err;

    profile_init_workspace_write(&profile, &workspace);
    bench_check(profile_resolve(&profile, &context, &map, &err), &err);
    if (layer)
        bench_check(layer_cover(layer, &map, &err), &err);
    sandbox = sandbox_new(&options, &err);
    bench_check(sandbox ? 0 : -1, &err);
    bench_check(sandbox_probe(sandbox, &err), &err);
    return sandbox;
}

struct sandbox *sandbox_open(const struct bench *bench, bool cache_idle)
{
    return open_with(bench, cache_idle, 0, NULL);
}

struct sandbox *sandbox_open_in(const struct bench *bench, struct layer *layer)
{
    return open_with(bench, false, PROFILE_EXCLUDE_SLASH_TMP | PROFILE_EXCLUDE_TMPDIR, layer);
}

void run_start(const struct bench *bench, struct sandbox *sandbox, const char *const *argv,
               struct launch *ret)
{
    run_start_with(bench, sandbox, argv, (const int[3]){bench->null, bench->null, bench->null},
                   ret);
}

void run_start_with(const struct bench *bench, struct sandbox *sandbox, const char *const *argv,
                    const int stdio[3], struct launch *ret)
{
    struct launch_options options = {
        .argv = (char *const *)argv,
        .env = run_environment(),
        .cwd = bench->ws,
        .stdio = {stdio[0], stdio[1], stdio[2]},
    };
    struct err err;

    bench_check(sandbox_launch(sandbox, &options, ret, &err), &err);
}

void run_wait_started(struct launch *launch)
{
    struct launch_report report = {0};
    struct pollfd ready = {.fd = launch->status, .events = POLLIN};
    struct err err;

    while (report.event == LAUNCH_NOTHING) {
        poll(&ready, 1, -1);
        bench_check(launch_read(launch, &report, &err), &err);
    }
    if (report.event != LAUNCH_STARTED)
        bench_fail("a command did not start: %s",
                   report.event == LAUNCH_FAILED ? report.failure.msg : "it has ended");
}

bool run_poll(struct launch *launch)
{
    struct launch_report report;
    struct err err;

    for (;;) {
        bench_check(launch_read(launch, &report, &err), &err);
        if (report.event == LAUNCH_NOTHING)
            return false;
        if (report.event == LAUNCH_FAILED)
            bench_fail("%s", report.failure.msg);
        if (report.event == LAUNCH_GONE)
            bench_fail("the launcher died");
        if (report.event == LAUNCH_EXITED)
            break;
    }
    if (report.wait_status)
        bench_fail("a command ended with status %#x", (unsigned)report.wait_status);
    launch_done(launch);
    return true;
}

void run_finish(struct launch *launch)
{
    struct pollfd ready = {.fd = launch->status, .events = POLLIN};

    do
        poll(&ready, 1, -1);
    while (!run_poll(launch));
}

void run_inside(const struct bench *bench, struct sandbox *sandbox, const char *const *argv)
{
    struct launch launch;

    run_start(bench, sandbox, argv, &launch);
    run_finish(&launch);
}
