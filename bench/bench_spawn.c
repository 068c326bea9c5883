/* The command line: what `cordon run` adds to a program, beside bubblewrap with the same plan. All
 * take turns, so that whatever else the machine does hits all of them. */
#include "bench.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "policy/protect.h"

#include <stdlib.h>
#include <unistd.h>

enum { ARGS_MAX = 512, WARM_UP = 5 };

enum way { BARE, CORDON, BWRAP, WAYS };

struct turn {
    const char *argv[ARGS_MAX];
    struct sample sample;
};

static void add(struct turn *turn, size_t *len, const char *const *words)
{
    for (; *words; words++) {
        if (*len + 1 >= ARGS_MAX)
            bench_fail("too many arguments");
        turn->argv[(*len)++] = *words;
    }
}

/* What bubblewrap has to be told for as much as Cordon's workspace-write: a read-only tree, the
 * workspace and /tmp open, .git closed again, the missing names of the workspace covered, every
 * namespace its own, no capabilities. It works in a workspace of its own, because it leaves the
 * names that it covers behind as folders (and so is not made to cover those in /tmp). */
static void make_bwrap(struct turn *turn, const struct bench *bench, const char *program)
{
    const char *ws = bench->other_ws;
    char *git = path_join(ws, ".git"); /* these stay until the program ends */
    AUTO(strv_done) struct strv names = {0};
    size_t len = 0;

    add(turn, &len,
        (const char *const[]){"/usr/bin/bwrap", "--unshare-all", "--cap-drop", "ALL",
                              "--new-session", "--die-with-parent", "--ro-bind", "/", "/", NULL});
    add(turn, &len,
        (const char *const[]){"--dev", "/dev", "--proc", "/proc", "--bind", ws, ws, "--bind",
                              "/tmp", "/tmp", "--ro-bind", git, git, NULL});
    protect_choice_names(NULL, &names);
    for (size_t i = 0; i < names.len; i++) {
        char *name = path_join(ws, names.items[i]);

        if (str_eq(names.items[i], ".git"))
            continue;
        add(turn, &len,
            (const char *const[]){"--perms", "555", "--tmpfs", name, "--remount-ro", name, NULL});
    }
    add(turn, &len, (const char *const[]){"--chdir", ws, "--", program, NULL});
}

static void make_cordon(struct turn *turn, const struct bench *bench, const char *program)
{
    size_t len = 0;

    add(turn, &len,
        (const char *const[]){bench->cordon, "run", "--profile", "workspace-write", "--sandbox",
                              "require", "--", program, NULL});
}

static void take_turns(const struct bench *bench, struct turn turns[WAYS], bool has_bwrap)
{
    for (unsigned i = 0; i < bench->runs + WARM_UP; i++) {
        for (int way = 0; way < (has_bwrap ? WAYS : BWRAP); way++) {
            uint64_t start = clock_now_ns();

            run_bare(bench, turns[way].argv);
            if (i >= WARM_UP)
                sample_add_since(&turns[way].sample, start);
        }
    }
}

static void measure(struct bench *bench, const char *program, const char *const names[WAYS],
                    double there)
{
    struct turn turns[WAYS] = {{.argv = {program, NULL}}};
    bool has_bwrap = access("/usr/bin/bwrap", X_OK) == 0;
    bool is_usual = there == BARE_THERE; /* what the targets are about */
    double bare;

    make_cordon(&turns[CORDON], bench, program);
    make_bwrap(&turns[BWRAP], bench, program);
    take_turns(bench, turns, has_bwrap);
    bare = sample_median(&turns[BARE].sample);
    *(is_usual ? &bench->bare : &bench->bare_static) = bare;
    report_add_sample(&bench->report, &(struct figure){.name = names[BARE], .unit = "ms"},
                      &turns[BARE].sample);
    report_add_sample(&bench->report,
                      &(struct figure){.name = names[CORDON],
                                       .unit = "ms",
                                       .goal = is_usual ? GOAL_AT_MOST : GOAL_NONE,
                                       .target = 2.4,
                                       .bare = bare,
                                       .bare_there = there},
                      &turns[CORDON].sample);
    if (has_bwrap) {
        report_add_sample(&bench->report,
                          &(struct figure){.name = names[BWRAP], .unit = "ms", .bare = bare},
                          &turns[BWRAP].sample);
        report_add(&bench->report, &(struct figure){.name = "  cordon run / bwrap",
                                                    .unit = "x",
                                                    .value = sample_median(&turns[CORDON].sample) /
                                                             sample_median(&turns[BWRAP].sample),
                                                    .runs = bench->runs,
                                                    .goal = GOAL_AT_MOST,
                                                    .target = 0.5});
    } else {
        fputs("bench: /usr/bin/bwrap is not installed: nothing to compare with\n", stderr);
    }
    for (int way = 0; way < WAYS; way++)
        sample_done(&turns[way].sample);
}

void bench_spawn(struct bench *bench)
{
    measure(bench, "/bin/true",
            (const char *const[WAYS]){"posix_spawn /bin/true", "cordon run /bin/true",
                                      "bwrap /bin/true"},
            BARE_THERE);
    measure(bench, bench->static_true,
            (const char *const[WAYS]){"posix_spawn static true", "cordon run static true",
                                      "bwrap static true"},
            BARE_STATIC_THERE);
}
