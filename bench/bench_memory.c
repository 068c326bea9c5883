/* What a running command costs beside itself: the launcher's size, and its proportional share of
 * memory while it waits (smaps_rollup, proc(5); only root may read that of a launcher). */
#include "bench.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COMMANDS = 50, ROLLUP_MAX = 8192 };

double bench_memory_of(pid_t pid)
{
    AUTO_FREE char *path = alloc_strf("/proc/%d/smaps_rollup", (int)pid);
    AUTO(buf_done) struct buf text = {0};
    const char *line;
    struct err err;
    double kib = 0;

    bench_check(fd_read_file(path, ROLLUP_MAX, &text, &err), &err);
    line = strstr(text.data, "\nPss:");
    if (!line || sscanf(line, "\nPss: %lf kB", &kib) != 1)
        bench_fail("%s has no Pss line", path);
    return kib;
}

static void measure_memory(struct bench *bench)
{
    struct sandbox *sandbox = sandbox_open(bench, true);
    const char *const argv[] = {bench->static_pause, NULL};
    struct launch launches[COMMANDS];
    AUTO(sample_done) struct sample sample = {0};

    for (int i = 0; i < COMMANDS; i++)
        run_start(bench, sandbox, argv, &launches[i]);
    for (int i = 0; i < COMMANDS; i++)
        run_wait_started(&launches[i]);
    for (int i = 0; i < COMMANDS; i++)
        sample_add(&sample, bench_memory_of(launches[i].init));
    report_add_sample(&bench->report,
                      &(struct figure){.name = "memory of a launcher, 50 commands running",
                                       .unit = "KiB",
                                       .goal = GOAL_AT_MOST,
                                       .target = 0.2 * 1024},
                      &sample);
    for (int i = 0; i < COMMANDS; i++)
        launch_done(&launches[i]);
    sandbox_free(sandbox);
}

void bench_memory(struct bench *bench)
{
    struct stat st;

    if (stat(bench->launcher, &st))
        bench_fail("%s is missing", bench->launcher);
    report_add(&bench->report, &(struct figure){.name = "launcher on disk",
                                                .unit = "KiB",
                                                .value = (double)st.st_size / 1024,
                                                .runs = 1,
                                                .goal = GOAL_AT_MOST,
                                                .target = 200});
    if (geteuid() == 0)
        measure_memory(bench);
    else
        fputs("bench: only root can see the memory of a launcher\n", stderr);
}
