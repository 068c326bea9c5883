/* What the audit log adds to a sandboxed launch: the same command with and without it, by turns. */
#include "bench.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"

enum { WARM_UP = 5 };

void bench_audit(struct bench *bench)
{
    const char *const with[] = {bench->cordon, "run",       "--sandbox", "require",
                                "--",          "/bin/true", NULL};
    const char *const without[] = {bench->cordon, "run", "--no-audit", "--sandbox",
                                   "require",     "--",  "/bin/true",  NULL};
    AUTO_FREE char *home = alloc_strf("CORDON_HOME=%s-home", bench->ws);
    char *const env[] = {(char *)"PATH=/usr/local/bin:/usr/bin:/bin", (char *)"LANG=C", home, NULL};
    AUTO(sample_done) struct sample logged = {0};
    AUTO(sample_done) struct sample plain = {0};

    for (unsigned i = 0; i < bench->runs + WARM_UP; i++) {
        uint64_t start = clock_now_ns();

        run_bare_with(bench, without, env);
        if (i >= WARM_UP)
            sample_add_since(&plain, start);
        start = clock_now_ns();
        run_bare_with(bench, with, env);
        if (i >= WARM_UP)
            sample_add_since(&logged, start);
    }
    report_add_sample(&bench->report,
                      &(struct figure){.name = "cordon run, audit on", .unit = "ms"}, &logged);
    report_add(&bench->report,
               &(struct figure){.name = "  audit on / off",
                                .unit = "x",
                                .value = sample_median(&logged) / sample_median(&plain),
                                .runs = bench->runs,
                                .goal = GOAL_AT_MOST,
                                .target = 1.05});
}
