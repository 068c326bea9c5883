/* What it costs that programs are told, or judged: a shell that executes one after the other, in turns
 * with a command about whose programs nobody asks. */
#include "bench_guard.h"
#include "sample.h"

#include "base/clock.h"

#include <stdio.h>

enum { EXECS = 200 };

static const struct kind {
    const char *name;
    const char *flag; /* NULL: nobody wants to know */
} kinds[] = {
    {"exec in a shell", NULL},
    {"  more when it is told", "--trace=exec"},
    {"  more when it is judged", "--judge=every-exec"},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static double time_kind(const struct bench *bench, const struct kind *kind)
{
    static const char script[] = "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done";
    const char *argv[16] = {bench->cordon, "run", "--profile", "workspace-write", NULL};
    size_t len = 4;
    uint64_t start;

    if (kind->flag)
        argv[len++] = kind->flag;
    argv[len++] = "--";
    argv[len++] = "sh";
    argv[len++] = "-c";
    argv[len++] = script;
    argv[len] = NULL;
    start = clock_now_ns();
    run_bare(bench, argv);
    return (double)(clock_now_ns() - start) / 1000 / EXECS;
}

/* Each but the first: what it takes more than the first in the same turn. */
void guard_execs_measure(struct bench *bench)
{
    struct sample samples[KINDS] = {0};
    const unsigned turns = bench->runs / 10 + 2;

    for (unsigned turn = 0; turn < turns; turn++) {
        double first = time_kind(bench, &kinds[0]);

        sample_add(&samples[0], first);
        for (size_t i = 1; i < KINDS; i++)
            sample_add(&samples[i], time_kind(bench, &kinds[i]) - first);
    }
    for (size_t i = 0; i < KINDS; i++) {
        report_add_sample(&bench->report, &(struct figure){.name = kinds[i].name, .unit = "us"},
                          &samples[i]);
        sample_done(&samples[i]);
    }
}
