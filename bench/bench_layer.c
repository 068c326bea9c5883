/* What a change layer costs: a launch that begins a step, and one that joins others, beside the same launch without; work on
 * files in a layer beside the same work outside and in a sandbox alone, taking turns; and 10,000 changes, listed,
 * accepted and taken back.
 *
 * What makes files is given a new layer each time, as the real tree is given a fresh place. What only looks at them does
 * it where a command of the layer lives, so that the second time it finds what the kernel keeps. */
#include "bench.h"
#include "works.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/path.h"
#include "base/str.h"
#include "layer/accept.h"
#include "layer/change.h"
#include "layer/layer.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WARM_UP = 5, TURNS_MIN = 3, CHANGED = 12000, LISTS = 20, ACCEPTS = 8, GRACE_US = 50000 };

/* --- a layer, and a sandbox in it --- */

struct inside {
    struct layer *layer;
    struct sandbox *sandbox;
    struct launch living;
    bool lives;
};

static void inside_open(const struct bench *bench, bool lives, struct inside *ret)
{
    const struct layer_options options = {.held_by = "bench"};
    const char *const pause[] = {bench->static_pause, NULL};
    struct err err;

    *ret = (struct inside){.layer = layer_create(&options, &err), .lives = lives};
    bench_check(ret->layer ? 0 : -1, &err);
    ret->sandbox = sandbox_open_in(bench, ret->layer);
    if (!lives)
        return;
    run_start(bench, ret->sandbox, pause, &ret->living);
    run_wait_started(&ret->living);
}

static void inside_close(struct inside *inside)
{
    struct err err;

    if (inside->lives)
        launch_done(&inside->living);
    sandbox_free(inside->sandbox);
    bench_check(layer_remove(inside->layer, &err), &err);
}

/* --- launches --- */

static double add_launches(struct bench *bench, const char *name, struct sample *sample)
{
    report_add_sample(&bench->report, &(struct figure){.name = name, .unit = "ms"}, sample);
    return sample_median(sample);
}

static void add_more(struct bench *bench, const char *name, double more, double target)
{
    report_add(&bench->report, &(struct figure){.name = name,
                                                .unit = "ms",
                                                .value = more,
                                                .runs = bench->runs,
                                                .goal = GOAL_AT_MOST,
                                                .target = target});
}

/* What of it is the layer's own: folders, the mount, and what becomes of a step in which nothing is. */
static void measure_steps(struct bench *bench)
{
    const char *const argv[] = {bench->static_true, NULL};
    const struct launch_options options = {.argv = (char *const *)argv, .cwd = bench->ws};
    struct sample begins = {0}, ends = {0};
    struct inside inside;
    struct sandbox_view *view;

    inside_open(bench, false, &inside);
    view = layer_view(inside.layer);
    for (unsigned i = 0; i < bench->runs; i++) {
        uint64_t start = clock_now_ns();
        struct err err;

        bench_check(view->enter(view, &options, &err), &err);
        sample_add_since(&begins, start);
        start = clock_now_ns();
        view->leave(view, 0);
        sample_add_since(&ends, start);
    }
    add_launches(bench, "  of that, beginning the step", &begins);
    add_launches(bench, "  of that, its end", &ends);
    sample_done(&begins);
    sample_done(&ends);
    inside_close(&inside);
}

enum launch_way { PLAIN, AHEAD, AT_ONCE, JOINED, LAUNCH_WAYS };

static void prepare(struct layer *layer)
{
    struct pollfd end = {.events = POLLIN};

    while ((end.fd = layer_prepare(layer)) >= 0)
        poll(&end, 1, -1);
}

/* In turns. Between two launches the layer is made as the server does it when it is quiet: but of AT_ONCE. */
static void time_launches(const struct bench *bench, const char *const *argv,
                          struct sample ret[LAUNCH_WAYS])
{
    struct sandbox *plain = sandbox_open_in(bench, NULL);
    struct inside insides[LAUNCH_WAYS];
    struct err err;

    for (int way = AHEAD; way < LAUNCH_WAYS; way++)
        inside_open(bench, way == JOINED, &insides[way]);
    for (unsigned i = 0; i < bench->runs + WARM_UP; i++)
        for (int way = 0; way < LAUNCH_WAYS; way++) {
            uint64_t start = clock_now_ns();

            run_inside(bench, way == PLAIN ? plain : insides[way].sandbox, argv);
            if (i >= WARM_UP)
                sample_add_since(&ret[way], start);
            if (way == PLAIN || way == JOINED)
                continue;
            bench_check(layer_squash(insides[way].layer, &err), &err);
            if (way == AHEAD)
                prepare(insides[way].layer);
            else
                layer_unprepare(insides[way].layer);
        }
    for (int way = AHEAD; way < LAUNCH_WAYS; way++)
        inside_close(&insides[way]);
    sandbox_free(plain);
}

static void measure_launches(struct bench *bench, const char *name, const char *const *argv)
{
    struct sample samples[LAUNCH_WAYS] = {{0}};
    double without;

    time_launches(bench, argv, samples);
    without = add_launches(bench, name, &samples[PLAIN]);
    add_more(bench, "  more: a new step, mounted ahead",
             add_launches(bench, "  in a layer, a new step, mounted ahead", &samples[AHEAD]) -
                 without,
             0.35);
    add_more(bench, "  more: a new step, mounted at once",
             add_launches(bench, "  in a layer, a new step, mounted at once", &samples[AT_ONCE]) -
                 without,
             0.35);
    add_more(bench, "  more: joining a step",
             add_launches(bench, "  in a layer, joined", &samples[JOINED]) - without, 0.05);
    for (int way = 0; way < LAUNCH_WAYS; way++)
        sample_done(&samples[way]);
}

/* --- work --- */

enum way { OUTSIDE, SANDBOX, LAYER, WAYS };

static const struct {
    const char *start; /* of the name of a work */
    double most;       /* of the time outside */
} measured[] = {{"make", 1.15}, {"npm ci", 1.05}, {"git status", 1.4}, {"grep -r", 1.2}};

static double run_way(const struct bench *bench, const struct work *work, enum way way,
                      struct sandbox *plain, const struct inside *warm)
{
    struct inside fresh;
    uint64_t start;
    double ms;

    if (way == LAYER && work->leaves)
        inside_open(bench, false, &fresh);
    start = clock_now_ns();
    if (way == OUTSIDE)
        run_bare(bench, work->argv);
    else if (way == SANDBOX)
        run_inside(bench, plain, work->argv);
    else
        run_inside(bench, work->leaves ? fresh.sandbox : warm->sandbox, work->argv);
    ms = (double)(clock_now_ns() - start) / 1e6;
    if (way == LAYER && work->leaves)
        inside_close(&fresh);
    else
        work_undo(bench, work);
    return ms;
}

/* The first turn is not counted; who begins changes from turn to turn. */
static void measure_ways(const struct bench *bench, const struct work *work, unsigned turns,
                         struct sample ret[WAYS])
{
    struct sandbox *plain = sandbox_open_in(bench, NULL);
    struct inside warm;

    inside_open(bench, true, &warm);
    for (unsigned i = 0; i <= turns; i++)
        for (unsigned k = 0; k < WAYS; k++) {
            const enum way way = (enum way)((i + k) % WAYS);
            const double ms = run_way(bench, work, way, plain, &warm);

            if (i)
                sample_add(&ret[way], ms);
        }
    inside_close(&warm);
    sandbox_free(plain);
}

static void measure_work(struct bench *bench, const struct work *work, double most,
                         const double launch[WAYS])
{
    static const char *const way_names[WAYS] = {"outside", "in a sandbox", "in a layer"};
    const unsigned turns = bench->runs / work->share;
    const unsigned fewest = bench_is_quick(bench) ? 1 : TURNS_MIN;
    struct sample samples[WAYS] = {{0}};
    double times[WAYS];

    if (access(work->program, X_OK)) {
        fprintf(stderr, "bench: %s: %s is not installed\n", work->name, work->program);
        return;
    }
    work_make(bench, work);
    measure_ways(bench, work, turns > fewest ? turns : fewest, samples);
    for (int way = 0; way < WAYS; way++) {
        char *name = alloc_strf("%s%s%s", way ? "  " : work->name, way ? "" : ", ", way_names[way]);

        report_add_sample(&bench->report, &(struct figure){.name = name, .unit = "ms"},
                          &samples[way]); /* has the name to its end */
        times[way] = sample_median(&samples[way]) - launch[way];
        sample_done(&samples[way]);
    }
    report_add(&bench->report,
               &(struct figure){.name = "  in a layer / outside, without the launch",
                                .unit = "x",
                                .value = times[LAYER] / times[OUTSIDE],
                                .runs = turns,
                                .goal = GOAL_AT_MOST,
                                .target = most});
}

static void measure_works(struct bench *bench)
{
    const struct work nothing = {.argv = (const char *const[]){"/bin/true", NULL}};
    struct sample samples[WAYS] = {{0}};
    double launch[WAYS];

    measure_ways(bench, &nothing, bench->runs / 4, samples);
    for (int way = 0; way < WAYS; way++) {
        launch[way] = sample_median(&samples[way]);
        sample_done(&samples[way]);
    }
    for (size_t i = 0; i < works_len; i++)
        for (size_t k = 0; k < sizeof measured / sizeof *measured; k++)
            if (str_starts(works[i].name, measured[k].start))
                measure_work(bench, &works[i], measured[k].most, launch);
}

/* --- 10,000 changes --- */

static void add_changes(struct bench *bench, const char *name, double target, struct sample *sample)
{
    report_add_sample(
        &bench->report,
        &(struct figure){.name = name, .unit = "ms", .goal = GOAL_AT_MOST, .target = target},
        sample);
    sample_done(sample);
}

static size_t list(const struct layer *layer, struct sample *sample)
{
    AUTO(changes_done) struct changes changes = {0};
    AUTO(strv_done) struct strv problems = {0};
    const struct change_query query = {.step = 0};
    const uint64_t start = clock_now_ns();
    struct err err;

    bench_check(change_list(layer, &query, &changes, &problems, &err), &err);
    sample_add_since(sample, start);
    return changes.len;
}

static void take(struct layer *layer, bool is_undo, struct sample *sample)
{
    AUTO(accept_result_done) struct accept_result result = {0};
    const struct accept_request request = {.flags = ACCEPT_MARKED};
    const uint64_t start = clock_now_ns();
    struct err err;

    bench_check(is_undo ? change_undo(layer, 0, &request, &result, &err)
                        : change_accept(layer, &request, &result, &err),
                &err);
    sample_add_since(sample, start);
    if (result.left_len || !result.done.len)
        bench_fail("%zu changes were done, and %zu left: %s", result.done.len, result.left_len,
                   result.left_len ? result.left->path : "");
}

static void measure_changes(struct bench *bench)
{
    /* 6,000 changed, 2,000 removed, 2,000 new in a full run */
    const char *const change[] = {
        "/bin/sh", "-c",
        "cd changed && n=$(ls | wc -l) && m=$((n / 2)) r=$((n * 2 / 3)) && "
        "ls | head -n $m | while read d; do sed -i 's/abc/xyz/' $d/*.txt; done && "
        "ls | head -n $r | tail -n $((r - m)) | while read d; do cp -r $d ../changed/new-$d; done "
        "&& "
        "ls | grep -v new- | tail -n $((n - r - n / 6)) | while read d; do rm -r $d; done",
        NULL};
    struct sample lists = {0}, accepts = {0}, undos = {0};
    const unsigned turns = bench_is_quick(bench) ? 1 : ACCEPTS;
    struct inside inside;
    size_t len = 0;

    works_make_tree(bench, "changed", CHANGED);
    usleep(GRACE_US); /* else what was made last might have been changed since the step began */
    inside_open(bench, false, &inside);
    run_inside(bench, inside.sandbox, change);
    for (unsigned i = 0; i < (bench_is_quick(bench) ? 2 : LISTS); i++)
        len = list(inside.layer, &lists);
    fprintf(stderr, "bench: %zu changes\n", len);
    for (unsigned i = 0; i < turns; i++) {
        take(inside.layer, false, &accepts);
        take(inside.layer, true, &undos);
    }
    add_changes(bench, "10,000 changes: list", 150, &lists);
    add_changes(bench, "  accept, moved", 400, &accepts);
    add_changes(bench, "  undo that", 400, &undos);
    inside_close(&inside);
}

void bench_layer(struct bench *bench)
{
    AUTO_FREE char *file = path_join(bench->ws, "touched");

    measure_launches(bench, "launch of a program that does nothing, no layer",
                     (const char *const[]){bench->static_true, NULL});
    measure_launches(bench, "launch of one that writes a file, no layer",
                     (const char *const[]){bench->static_touch, file, NULL});
    unlink(file);
    measure_steps(bench);
    measure_works(bench);
    measure_changes(bench);
}
