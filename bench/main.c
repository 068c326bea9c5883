/* The benchmark: one run, one table. It measures what is built beside it (scripts/bench builds for
 * release) in a scratch folder, and leaves nothing behind. That is in $CORDON_TESTS, /srv or the home,
 * not in /tmp or /var/tmp, which commands have of their own. */
#include "bench.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RUNS = 400, RUNS_QUICK = 16 };

static const char usage[] =
    "usage: bench [--json] [--quick] [--against BUILD] [PART]...\n"
    "\n"
    "Measures starts, rates, sessions, slowdown and memory of the cordon in this build folder, "
    "and\n"
    "prints one table. --quick takes a tenth of the time and shows little more than that it "
    "works.\n"
    "--against takes another build folder, such as that of the commit before: the parts works and\n"
    "guard then measure its cordon beside this one, taking turns. PARTs are audit, rules, patch,\n"
    "spawn, library, rate, memory, sessions, server, neighbours, tools, works, guard,\n"
    "layer and network.\n";

/* A file of this build folder, seen from this program. */
static char *built(const char *name)
{
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    AUTO_FREE char *folder = NULL;
    AUTO_FREE char *top = NULL;
    char *path;

    if (len <= 0)
        bench_fail("/proc/self/exe cannot be read");
    self[len] = '\0';
    folder = path_parent(self);
    top = path_parent(folder);
    path = path_join(top, name);
    if (access(path, X_OK))
        bench_fail("%s is not built", path);
    return path;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

void bench_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static char *scratch; /* removed however the program ends */
static pid_t owner;

static void remove_scratch(void)
{
    if (getpid() != owner) /* a neighbour or a plain server, of bench_neighbours() */
        return;
    bench_remove(scratch);
    free(scratch);
}

static char *make_workspace(const char *name)
{
    char *path = path_join(scratch, name);
    AUTO_FREE char *git = path_join(path, ".git");

    if (mkdir(path, 0755) || mkdir(git, 0755))
        bench_fail("%s cannot be filled", scratch);
    return path;
}

static void make_scratch(struct bench *bench)
{
    const char *given = getenv("CORDON_TESTS");
    const char *home = getenv("HOME");
    const char *parent = given ? given : access("/srv", W_OK) == 0 ? "/srv" : home;

    scratch = alloc_strf("%s/cordon-bench-XXXXXX", parent ? parent : "/var/tmp");
    if (!mkdtemp(scratch))
        bench_fail("no scratch folder in %s", parent ? parent : "/var/tmp");
    owner = getpid();
    atexit(remove_scratch);
    bench->ws = make_workspace("ws");
    bench->other_ws = make_workspace("other-ws");
}

/* A copy of a program of the benchmark's, where commands see it wherever the build lies. */
static char *shown(const char *name)
{
    AUTO_FREE char *relative = path_join("bench", name);
    AUTO_FREE char *from = built(relative);
    char *to = path_join(scratch, name);
    AUTO(buf_done) struct buf bytes = {0};
    AUTO_CLOSE int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    struct err err;

    if (fd < 0)
        bench_fail("%s cannot be made", to);
    bench_check(fd_read_file(from, SIZE_MAX / 2, &bytes, &err), &err);
    bench_check(fd_write_all(fd, bytes.data, bytes.len, &err), &err);
    return to;
}

/* Whatever runs here has its home in the scratch folder: nothing of the person's own is read, and
 * nothing of theirs written. */
static void move_home(void)
{
    AUTO_FREE char *home = path_join(scratch, "home");

    if (mkdir(home, 0755) || setenv("HOME", home, 1) || unsetenv("CORDON_HOME") ||
        unsetenv("XDG_RUNTIME_DIR") || unsetenv("XDG_STATE_HOME"))
        bench_fail("%s cannot be the home", home);
}

static const struct part {
    const char *name;
    const char *what;
    void (*run)(struct bench *bench);
} parts[] = {
    {"audit", "the audit log", bench_audit},
    {"rules", "the decision before a command", bench_rules},
    {"patch", "patches", bench_patch},
    {"spawn", "starting programs", bench_spawn},
    {"library", "the library call", bench_library},
    {"rate", "launches per second", bench_rate},
    {"memory", "memory", bench_memory},
    {"sessions", "sessions", bench_sessions},
    {"server", "the exec server", bench_server},
    {"mcp", "MCP", bench_mcp},
    {"neighbours", "one client beside others", bench_neighbours},
    {"tools", "work on 20,000 files", bench_tools},
    {"works", "programs that make files", bench_works},
    {"guard", "what the guard costs", bench_guard},
    {"layer", "change layers", bench_layer},
    {"network", "a proxied network beside others", bench_network},
};

enum { PARTS = sizeof parts / sizeof *parts };

/* cordon of another build folder. */
static char *find_before(const char *folder)
{
    AUTO_FREE char *path = folder ? path_join(folder, "src/cli/cordon") : NULL;
    char *real = path ? realpath(path, NULL) : NULL;

    if (!real)
        bench_fail("--against: %s is no build folder", folder ? folder : "nothing");
    return real;
}

/* false when there is no part of this name. */
static bool choose(const char *name, bool chosen[PARTS])
{
    for (size_t i = 0; i < PARTS; i++)
        if (str_eq(parts[i].name, name))
            return chosen[i] = true;
    return false;
}

static void bench_run(struct bench *bench, const bool chosen[PARTS])
{
    bool all = true;

    for (size_t i = 0; i < PARTS; i++)
        all &= !chosen[i];
    for (size_t i = 0; i < PARTS; i++) {
        if (!all && !chosen[i])
            continue;
        fprintf(stderr, "bench: %s\n", parts[i].what);
        parts[i].run(bench);
    }
}

int main(int argc, char **argv)
{
    AUTO_FREE char *cordon = NULL;
    AUTO_FREE char *launcher = NULL;
    AUTO_FREE char *static_true = NULL;
    AUTO_FREE char *static_pause = NULL;
    AUTO_FREE char *static_write = NULL;
    AUTO_FREE char *static_touch = NULL;
    AUTO_FREE char *static_echo = NULL;
    AUTO_FREE char *static_calls = NULL;
    AUTO_FREE char *static_dial = NULL;
    AUTO_FREE char *before = NULL;
    struct bench bench = {.runs = RUNS, .null = open("/dev/null", O_RDWR | O_CLOEXEC)};
    bool chosen[PARTS] = {false};
    bool is_json = false;

    for (int i = 1; i < argc; i++) {
        if (str_eq(argv[i], "--json")) {
            is_json = true;
        } else if (str_eq(argv[i], "--quick")) {
            bench.runs = RUNS_QUICK;
        } else if (str_eq(argv[i], "--against")) {
            free(before);
            bench.before = before = find_before(argv[++i]);
        } else if (!choose(argv[i], chosen)) {
            fputs(usage, str_eq(argv[i], "--help") ? stdout : stderr);
            return str_eq(argv[i], "--help") ? 0 : 2;
        }
    }
    bench.cordon = cordon = built("src/cli/cordon");
    bench.launcher = launcher = built("src/sandbox/launcher/cordon-linux-sandbox");
    make_scratch(&bench);
    bench.static_true = static_true = shown("static-true");
    bench.static_pause = static_pause = shown("static-pause");
    bench.static_write = static_write = shown("static-write");
    bench.static_touch = static_touch = shown("static-touch");
    bench.static_echo = static_echo = shown("static-echo");
    bench.static_calls = static_calls = shown("static-calls");
    bench.static_dial = static_dial = shown("static-dial");
    move_home();
    bench_run(&bench, chosen);
    (is_json ? report_print_json : report_print)(&bench.report, stdout);
    report_done(&bench.report);
    free(bench.ws);
    free(bench.other_ws);
    return 0;
}
