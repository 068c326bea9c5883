/* What a sandbox with its guard costs: works outside, inside, and inside by another build (--against), in turns, so
 * that whatever else the machine does hits all of them. A ratio is the median over the turns, each
 * of them compared within itself, less what a launch takes. */
#include "bench_guard.h"
#include "works.h"

#include "base/auto.h"
#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NAMES = 96, NAME_SIZE = 72, WARM_UP = 1, TURNS_MIN = 2 };

struct ways {
    struct sample samples[WAYS];
    struct sample to_outside; /* ratios */
    struct sample to_before;
};

const char *name_of(const char *fmt, ...)
{
    static char names[NAMES][NAME_SIZE];
    static size_t len;
    va_list args;

    if (len == NAMES)
        bench_fail("too many names");
    va_start(args, fmt);
    vsnprintf(names[len], NAME_SIZE, fmt, args);
    va_end(args);
    return names[len++];
}

const char *const way_names[WAYS] = {"outside", "inside", "inside, by the build before"};

bool way_is_there(const struct bench *bench, enum way way)
{
    return way != BEFORE || bench->before;
}

void way_argv(const struct bench *bench, enum way way, const char *const *argv,
              const char *ret[WAY_ARGS_MAX])
{
    const char *const cordon[] = {way == BEFORE ? bench->before : bench->cordon,
                                  "run",
                                  "--profile",
                                  "workspace-write",
                                  "--sandbox",
                                  "require",
                                  "--",
                                  NULL};
    size_t len = 0;

    for (const char *const *word = cordon; way != OUTSIDE && *word; word++)
        ret[len++] = *word;
    for (; *argv; argv++) {
        if (len + 1 >= WAY_ARGS_MAX)
            bench_fail("too many arguments");
        ret[len++] = *argv;
    }
    ret[len] = NULL;
}

static double time_way(const struct bench *bench, enum way way, const char *const *argv)
{
    const char *full[WAY_ARGS_MAX];
    uint64_t start;

    way_argv(bench, way, argv, full);
    start = clock_now_ns();
    run_bare(bench, full);
    return (double)(clock_now_ns() - start) / CLOCK_NS_PER_MS;
}

/* One turn of all ways; each turn begins with another one. */
static void take_turn(const struct bench *bench, const struct work *work, unsigned turn,
                      double ret[WAYS])
{
    for (unsigned i = 0; i < WAYS; i++) {
        enum way way = (enum way)((turn + i) % WAYS);

        if (!way_is_there(bench, way))
            continue;
        ret[way] = time_way(bench, way, work->argv);
        work_undo(bench, work);
    }
}

static void take_turns(const struct bench *bench, const struct work *work, unsigned turns,
                       const double launch[WAYS], struct ways *ret)
{
    double times[WAYS] = {0};

    for (unsigned turn = 0; turn < turns + WARM_UP; turn++) {
        take_turn(bench, work, turn, times);
        if (turn < WARM_UP)
            continue;
        for (int way = 0; way < WAYS; way++)
            if (way_is_there(bench, way))
                sample_add(&ret->samples[way], times[way]);
        sample_add(&ret->to_outside,
                   (times[INSIDE] - launch[INSIDE]) / (times[OUTSIDE] - launch[OUTSIDE]));
        if (bench->before)
            sample_add(&ret->to_before,
                       (times[INSIDE] - launch[INSIDE]) / (times[BEFORE] - launch[BEFORE]));
    }
}

static void ways_done(struct ways *ways)
{
    for (int way = 0; way < WAYS; way++)
        sample_done(&ways->samples[way]);
    sample_done(&ways->to_outside);
    sample_done(&ways->to_before);
}

static void add_times(struct bench *bench, const char *name, struct ways *ways)
{
    for (int way = 0; way < WAYS; way++)
        if (way_is_there(bench, way))
            report_add_sample(&bench->report,
                              &(struct figure){.name = name_of("%s%s%s", way ? "  " : name,
                                                               way ? "" : ", ", way_names[way]),
                                               .unit = "ms"},
                              &ways->samples[way]);
}

/* The limit is for the ratio to the build before, or where there is none, to outside. */
static void add_ratios(struct bench *bench, const struct work *work, struct ways *ways)
{
    struct figure outside = {.name = "  inside / outside, without the launch", .unit = "x"};
    struct figure before = {.name = "  inside / the build before", .unit = "x"};

    if (work->against_before > 0)
        (bench->before ? &before : &outside)->goal = GOAL_AT_MOST;
    before.target = work->against_before;
    outside.target = work->against_outside;
    report_add_sample(&bench->report, &outside, &ways->to_outside);
    if (bench->before)
        report_add_sample(&bench->report, &before, &ways->to_before);
}

static void measure_work(struct bench *bench, const struct work *work, const double launch[WAYS])
{
    const unsigned fewest = bench_is_quick(bench) ? 1 : TURNS_MIN;
    const unsigned turns = bench->runs / work->share;
    struct ways ways = {0};

    if (access(work->program, X_OK)) {
        fprintf(stderr, "bench: %s: %s is not installed\n", work->name, work->program);
        return;
    }
    work_make(bench, work);
    take_turns(bench, work, turns > fewest ? turns : fewest, launch, &ways);
    add_times(bench, work->name, &ways);
    add_ratios(bench, work, &ways);
    ways_done(&ways);
}

/* `cordon run -- true`, and what each way adds to a command that does nothing. */
static void measure_launch(struct bench *bench, double ret[WAYS])
{
    const struct work nothing = {.argv = (const char *const[]){"/bin/true", NULL}};
    struct ways ways = {0};

    take_turns(bench, &nothing, bench->runs, (const double[WAYS]){0}, &ways);
    add_times(bench, "cordon run -- true", &ways);
    for (int way = 0; way < WAYS; way++)
        ret[way] = sample_median(&ways.samples[way]);
    if (bench->before)
        report_add(&bench->report, &(struct figure){.name = "  less than the build before",
                                                    .unit = "ms",
                                                    .value = ret[BEFORE] - ret[INSIDE],
                                                    .runs = bench->runs,
                                                    .goal = GOAL_AT_LEAST,
                                                    .target = 0.3});
    ways_done(&ways);
}

void bench_works(struct bench *bench)
{
    double launch[WAYS] = {0};

    measure_launch(bench, launch);
    for (size_t i = 0; i < works_len; i++)
        measure_work(bench, &works[i], launch);
}

void bench_guard(struct bench *bench)
{
    guard_calls_measure(bench);
    guard_execs_measure(bench);
    guard_crowd_measure(bench);
    guard_memory_measure(bench);
    guard_server_measure(bench);
}
