/* Single calls that the guard is asked about (bench/static_calls.c makes and times them), 64
 * sandboxes that make them at once, and the memory that the guard and what stands beside a command
 * take. See bench_guard.h. */
#include "bench_guard.h"
#include "wire.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/path.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ROUNDS_MAX = 15000,
    CROWD = 64,
    CROWD_ROUNDS = 2000,
    CROWD_TURNS = 5,
    QUICK_SHARE = 50,
    TURNS = 5,
    FRIENDS = 8, /* `cordon run` at a time, when memory is measured */
    PEACE_US = 1000,
    SERVER_TURNS = 8,
    SERVER_WARM = 5,
};

/* What bench/static_calls.c writes. */
struct call_times {
    uint64_t begin;
    uint64_t end;
    uint32_t rounds[ROUNDS_MAX];
};

static unsigned few(const struct bench *bench, unsigned count)
{
    return bench_is_quick(bench) ? count / QUICK_SHARE : count;
}

/* A new folder, in which calls are made, with the file that they open. The caller frees. */
static char *make_place(const struct bench *bench)
{
    static unsigned count;
    AUTO_FREE char *name = alloc_strf("calls%u", count++);
    char *folder = path_join(bench->ws, name);
    AUTO_FREE char *file = path_join(folder, "there");
    AUTO_CLOSE int fd = -1;

    if (mkdir(folder, 0755))
        bench_fail("%s: cannot be made", folder);
    fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        bench_fail("%s: cannot be made", file);
    return folder;
}

static void make_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC))
        bench_fail("no pipe");
}

/* All of what one of them writes. */
static void read_times(int fd, unsigned rounds, struct call_times *ret)
{
    size_t wanted = offsetof(struct call_times, rounds) + rounds * sizeof *ret->rounds;
    size_t len = 0;

    while (len < wanted) {
        ssize_t n = read(fd, (char *)ret + len, wanted - len);

        if (n <= 0)
            bench_fail("calls ended too soon");
        len += (size_t)n;
    }
}

static void wait_for(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status)
        bench_fail("a process ended with status %#x", (unsigned)status);
}

/* --- one call at a time --- */

static const struct kind {
    const char *word; /* of bench/static_calls.c */
    const char *name;
    unsigned rounds;
    double target;     /* us, on one processor; 0: none */
    const char *floor; /* of bench/static_calls.c: with the least that any guard does; NULL */
} kinds[] = {
    {"open", "open for writing, close", 10000, 4, "asked-open"},
    {"folder", "mkdir", 2000, 0, NULL},
    {"file", "open of a new file, close", 5000, 0, "asked-file"},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static void time_calls(const struct bench *bench, enum way way, const struct kind *kind,
                       const char *word, struct sample *sample)
{
    static struct call_times times;
    AUTO_FREE char *folder = make_place(bench);
    AUTO_FREE char *count = alloc_strf("%u", few(bench, kind->rounds));
    const char *argv[WAY_ARGS_MAX];
    int out[2];
    pid_t pid;

    way_argv(bench, way, (const char *const[]){bench->static_calls, word, count, folder, NULL},
             argv);
    make_pipe(out);
    pid = run_spawn(bench, argv, bench->null, out[1]);
    close(out[1]);
    read_times(out[0], few(bench, kind->rounds), &times);
    close(out[0]);
    wait_for(pid);
    for (unsigned i = 0; i < few(bench, kind->rounds); i++)
        sample_add(sample, times.rounds[i] / 1000.0);
}

static void calls_of_kind(struct bench *bench, const struct kind *kind, bool is_one)
{
    struct sample samples[WAYS] = {0};
    AUTO(sample_done) struct sample floor = {0};

    for (unsigned turn = 0; turn < TURNS; turn++) {
        for (int way = 0; way < WAYS; way++)
            if (way_is_there(bench, (enum way)way))
                time_calls(bench, (enum way)way, kind, kind->word, &samples[way]);
        if (kind->floor)
            time_calls(bench, OUTSIDE, kind, kind->floor, &floor);
    }
    for (int way = 0; way < WAYS; way++) {
        struct figure figure = {.unit = "us"};

        if (!way_is_there(bench, (enum way)way))
            continue;
        figure.name = name_of("%s%s%s%s", way ? "  " : kind->name, way ? "" : ", ", way_names[way],
                              way      ? ""
                              : is_one ? ", one processor"
                                       : "");
        if (way == INSIDE && is_one && kind->target > 0) {
            figure.goal = GOAL_AT_MOST;
            figure.target = kind->target;
        }
        report_add_sample(&bench->report, &figure, &samples[way]);
        sample_done(&samples[way]);
    }
    if (kind->floor)
        report_add_sample(
            &bench->report,
            &(struct figure){.name = "  outside, another process asked and doing the least",
                             .unit = "us"},
            &floor);
}

void guard_calls_measure(struct bench *bench)
{
    cpu_set_t all;
    cpu_set_t one;

    if (sched_getaffinity(0, sizeof all, &all))
        bench_fail("no processors");
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    for (size_t i = 0; i < KINDS; i++) {
        if (sched_setaffinity(0, sizeof one, &one))
            bench_fail("no processor of one's own");
        calls_of_kind(bench, &kinds[i], true);
        if (sched_setaffinity(0, sizeof all, &all))
            bench_fail("no processors");
        if (CPU_COUNT(&all) > 1)
            calls_of_kind(bench, &kinds[i], false);
    }
}

/* --- what is there of a process tree --- */

struct seen {
    pid_t pid;
    pid_t parent;
    char name[16];
};

/* Every process. The caller frees. */
static struct seen *look_around(size_t *ret_len)
{
    DIR *dir = opendir("/proc");
    struct seen *items = NULL;
    size_t cap = 0;
    struct dirent *entry;

    *ret_len = 0;
    while (dir && (entry = readdir(dir))) {
        AUTO_FREE char *path = alloc_strf("/proc/%s/stat", entry->d_name);
        FILE *file = entry->d_name[0] > '9' ? NULL : fopen(path, "re");
        struct seen seen = {0};

        if (file && fscanf(file, "%d (%15[^)]) %*c %d", &seen.pid, seen.name, &seen.parent) == 3) {
            items = alloc_grow(items, *ret_len, &cap, sizeof *items);
            items[(*ret_len)++] = seen;
        }
        if (file)
            fclose(file);
    }
    if (dir)
        closedir(dir);
    return items;
}

static pid_t parent_of(const struct seen *items, size_t len, pid_t pid)
{
    for (size_t i = 0; i < len; i++)
        if (items[i].pid == pid)
            return items[i].parent;
    return 0;
}

static bool is_below(const struct seen *items, size_t len, pid_t pid, pid_t top)
{
    while (pid > 1 && pid != top)
        pid = parent_of(items, len, pid);
    return pid == top;
}

/* Of all processes of this name at and below `top`, or of all but those called "static-pause" when
 * `name` is NULL. */
static double memory_below(pid_t top, const char *name, unsigned *ret_count)
{
    size_t len;
    AUTO_FREE struct seen *items = look_around(&len);
    double kib = 0;

    *ret_count = 0;
    for (size_t i = 0; i < len; i++) {
        bool is_meant = name ? str_eq(items[i].name, name) : !str_eq(items[i].name, "static-pause");

        if (is_meant && is_below(items, len, items[i].pid, top)) {
            kib += bench_memory_of(items[i].pid);
            (*ret_count)++;
        }
    }
    return kib;
}

/* --- many at once --- */

struct crowd {
    struct launch launches[CROWD];
    int ins[CROWD]; /* a byte begins the calls, closing it ends the command */
    int outs[CROWD];
    unsigned len;
    unsigned rounds;
};

static void crowd_start(const struct bench *bench, struct sandbox *sandbox, struct crowd *crowd)
{
    AUTO_FREE char *count = alloc_strf("%u", crowd->rounds);

    for (unsigned i = 0; i < crowd->len; i++) {
        AUTO_FREE char *folder = make_place(bench);
        int in[2];
        int out[2];

        make_pipe(in);
        make_pipe(out);
        run_start_with(bench, sandbox,
                       (const char *const[]){bench->static_calls, "open", count, folder, NULL},
                       (const int[3]){in[0], out[1], bench->null}, &crowd->launches[i]);
        crowd->ins[i] = in[1];
        crowd->outs[i] = out[0];
        close(in[0]);
        close(out[1]);
    }
    for (unsigned i = 0; i < crowd->len; i++)
        run_wait_started(&crowd->launches[i]);
}

/* Returns the time from the first call to the last one, ns. */
static double crowd_call(struct crowd *crowd)
{
    static struct call_times times;
    uint64_t begin = UINT64_MAX;
    uint64_t end = 0;

    for (unsigned i = 0; i < crowd->len; i++)
        if (write(crowd->ins[i], "", 1) != 1)
            bench_fail("nobody waits for the beginning");
    for (unsigned i = 0; i < crowd->len; i++) {
        read_times(crowd->outs[i], crowd->rounds, &times);
        begin = times.begin < begin ? times.begin : begin;
        end = times.end > end ? times.end : end;
    }
    return (double)(end - begin);
}

static void crowd_end(struct crowd *crowd)
{
    for (unsigned i = 0; i < crowd->len; i++) {
        close(crowd->ins[i]);
        run_finish(&crowd->launches[i]);
        close(crowd->outs[i]);
    }
}

/* PSS of the guard while `len` commands run that have made calls, KiB; 0: there is no guard, or
 * this is not root. */
static double crowd_measure(const struct bench *bench, struct sandbox *sandbox, unsigned len,
                            struct sample *sample)
{
    struct crowd crowd = {.len = len, .rounds = few(bench, CROWD_ROUNDS)};
    double kib = 0;
    unsigned count;

    crowd_start(bench, sandbox, &crowd);
    sample_add(sample, crowd_call(&crowd) / 1000 / (len * crowd.rounds));
    if (geteuid() == 0)
        kib = memory_below(getpid(), "cordon-guard", &count);
    crowd_end(&crowd);
    return kib;
}

static void add_memory(struct bench *bench, const char *name, double kib, double target)
{
    report_add(&bench->report, &(struct figure){.name = name,
                                                .unit = "KiB",
                                                .value = kib,
                                                .runs = 1,
                                                .goal = target > 0 ? GOAL_AT_MOST : GOAL_NONE,
                                                .target = target});
}

void guard_crowd_measure(struct bench *bench)
{
    struct sandbox *sandbox = sandbox_open(bench, true);
    AUTO(sample_done) struct sample alone = {0};
    AUTO(sample_done) struct sample crowd = {0};
    double one = 0;
    double many = 0;
    double none;
    unsigned count;

    for (int i = 0; i < CROWD_TURNS; i++) {
        one = crowd_measure(bench, sandbox, 1, &alone);
        many = crowd_measure(bench, sandbox, CROWD, &crowd);
    }
    report_add_sample(&bench->report, &(struct figure){.name = "a call, one sandbox", .unit = "us"},
                      &alone);
    report_add_sample(&bench->report,
                      &(struct figure){.name = "  64 sandboxes at once, time / calls",
                                       .unit = "us",
                                       .goal = GOAL_AT_MOST,
                                       .target = 5},
                      &crowd);
    if (one > 0) {
        none = memory_below(getpid(), "cordon-guard", &count);
        if (count)
            add_memory(bench, "memory of the guard, nothing running", none, 2 << 10);
        add_memory(bench, "  one command", one, 0);
        add_memory(bench, "  64 commands, for each more", (many - one) / (CROWD - 1), 16);
    } else {
        fputs("bench: no guard, or not root: its memory cannot be seen\n", stderr);
    }
    sandbox_free(sandbox);
}

/* --- memory beside a command --- */

/* `cordon run` with a command that waits. */
static pid_t pause_start(const struct bench *bench, enum way way)
{
    const char *argv[WAY_ARGS_MAX];
    unsigned count = 0;
    pid_t pid;

    way_argv(bench, way, (const char *const[]){bench->static_pause, NULL}, argv);
    pid = run_spawn(bench, argv, bench->null, bench->null);
    while (!count) { /* nothing tells that a command runs but that it does */
        usleep(PEACE_US);
        memory_below(pid, "static-pause", &count);
    }
    return pid;
}

static void pause_end(pid_t pid)
{
    int status;

    kill(pid, SIGTERM);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
}

/* Of all beside the command but the guard (which has limits of its own), and of all together. */
static void measure_beside(const struct bench *bench, enum way way, struct sample *but_guard,
                           struct sample *all)
{
    pid_t pids[FRIENDS];
    unsigned count;

    for (int i = 0; i < FRIENDS; i++)
        pids[i] = pause_start(bench, way);
    for (int i = 0; i < FRIENDS; i++) {
        double kib = memory_below(pids[i], NULL, &count);

        sample_add(all, kib);
        sample_add(but_guard, kib - memory_below(pids[i], "cordon-guard", &count));
    }
    for (int i = 0; i < FRIENDS; i++)
        pause_end(pids[i]);
}

void guard_memory_measure(struct bench *bench)
{
    struct sample but_guard[WAYS] = {0};
    struct sample all[WAYS] = {0};

    if (geteuid()) {
        fputs("bench: only root can see the memory of a launcher\n", stderr);
        return;
    }
    for (int way = INSIDE; way < WAYS; way++)
        if (way_is_there(bench, (enum way)way))
            measure_beside(bench, (enum way)way, &but_guard[way], &all[way]);
    for (int way = INSIDE; way < WAYS; way++) {
        if (!way_is_there(bench, (enum way)way))
            continue;
        report_add_sample(&bench->report,
                          &(struct figure){.name = way == BEFORE
                                                       ? "  by the build before"
                                                       : "memory of cordon run and its launcher",
                                           .unit = "KiB"},
                          &but_guard[way]);
        if (way == INSIDE)
            report_add_sample(&bench->report,
                              &(struct figure){.name = "  with the guard", .unit = "KiB"},
                              &all[way]);
    }
    if (bench->before)
        add_memory(bench, "  more than the build before, without the guard",
                   sample_median(&but_guard[INSIDE]) - sample_median(&but_guard[BEFORE]), 64);
    for (int way = 0; way < WAYS; way++) {
        sample_done(&but_guard[way]);
        sample_done(&all[way]);
    }
}

/* --- the server --- */

static void time_server(const struct bench *bench, const char *cordon, const char *sandbox,
                        struct sample *sample)
{
    struct bench other = *bench;
    struct wire_server server;
    struct wire wire;

    other.cordon = cordon;
    wire_server_start(&server, &other);
    wire_open(&wire, &server);
    for (unsigned i = 0; i < SERVER_WARM + bench->runs / SERVER_TURNS; i++) {
        uint64_t begin = clock_now_ns();

        wire_send(&wire, "process/start",
                  "{\"processId\":\"p%u\",\"argv\":[\"/bin/true\"],\"cwd\":\"file://%s\","
                  "\"env\":{},\"sandbox\":%s,\"tty\":false}",
                  i, bench->ws, sandbox);
        wire_until(&wire, "\"method\":\"process/exited\"");
        if (i >= SERVER_WARM)
            sample_add_since(sample, begin);
        wire_until(&wire, "\"method\":\"process/closed\"");
    }
    wire_close(&wire);
    wire_server_stop(&server);
}

void guard_server_measure(struct bench *bench)
{
    AUTO_FREE char *sandbox = alloc_strf(
        "{\"permissions\":{\"type\":\"managed\",\"network\":\"restricted\",\"file_system\":{"
        "\"type\":\"restricted\",\"entries\":[{\"path\":{\"type\":\"special\",\"value\":{\"kind\":"
        "\"root\"}},\"access\":\"read\"},{\"path\":{\"type\":\"path\",\"path\":\"%s\"},"
        "\"access\":\"write\"}]}},\"windowsSandboxLevel\":\"disabled\"}",
        bench->ws);
    struct sample samples[WAYS] = {0};

    for (int turn = 0; turn < SERVER_TURNS; turn++) {
        time_server(bench, bench->cordon, sandbox, &samples[INSIDE]);
        if (bench->before)
            time_server(bench, bench->before, sandbox, &samples[BEFORE]);
    }
    report_add_sample(
        &bench->report,
        &(struct figure){.name = "server, start to exited, workspace-write", .unit = "ms"},
        &samples[INSIDE]);
    if (bench->before) {
        report_add_sample(&bench->report,
                          &(struct figure){.name = "  by the build before", .unit = "ms"},
                          &samples[BEFORE]);
        report_add(&bench->report, &(struct figure){.name = "  this / the build before",
                                                    .unit = "x",
                                                    .value = sample_median(&samples[INSIDE]) /
                                                             sample_median(&samples[BEFORE]),
                                                    .runs = samples[INSIDE].len,
                                                    .goal = GOAL_AT_MOST,
                                                    .target = 1});
    }
    sample_done(&samples[INSIDE]);
    sample_done(&samples[BEFORE]);
}
