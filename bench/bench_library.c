/* The library call: from sandbox_launch() until the command has ended and the launch is closed, out
 * of a small process and out of one with 512 MiB of memory in use. */
#include "bench.h"

#include "base/clock.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE = 512 << 20, WARM_UP = 5, FORKS = 20 };

enum way { FRESH, RECYCLED, AHEAD, WAYS };

struct call {
    enum way way;
    const char *program;
    double bare;
    double bare_there;
};

static void measure(struct bench *bench, const struct call *call, struct figure figure)
{
    struct sandbox *sandbox = sandbox_open(bench, call->way != FRESH);
    const char *const argv[] = {call->program, NULL};
    struct sample sample = {0};

    for (unsigned i = 0; i < bench->runs + WARM_UP; i++) {
        uint64_t start;

        if (call->way == AHEAD)
            sandbox_prepare(sandbox);
        start = clock_now_ns();
        run_inside(bench, sandbox, argv);
        if (i >= WARM_UP)
            sample_add_since(&sample, start);
    }
    figure.unit = "ms";
    figure.goal = call->bare_there == BARE_THERE ? GOAL_AT_MOST : GOAL_NONE;
    figure.target = call->way == FRESH ? 1.5 : 1.0;
    figure.p99_target = 5;
    figure.bare = call->bare;
    figure.bare_there = call->bare_there;
    report_add_sample(&bench->report, &figure, &sample);
    sample_done(&sample);
    sandbox_free(sandbox);
}

static void measure_all(struct bench *bench, const char *const names[2][WAYS])
{
    for (int way = 0; way < WAYS; way++)
        measure(bench,
                &(struct call){.way = (enum way)way,
                               .program = "/bin/true",
                               .bare = bench->bare,
                               .bare_there = BARE_THERE},
                (struct figure){.name = names[0][way]});
    for (int way = 0; way < WAYS; way++)
        measure(bench,
                &(struct call){.way = (enum way)way,
                               .program = bench->static_true,
                               .bare = bench->bare_static,
                               .bare_there = BARE_STATIC_THERE},
                (struct figure){.name = names[1][way]});
}

/* What the library does not do. */
static void measure_fork(struct bench *bench)
{
    struct sample sample = {0};

    for (int i = 0; i < FORKS; i++) {
        uint64_t start = clock_now_ns();
        pid_t pid = fork();

        if (pid == 0)
            _exit(0);
        waitpid(pid, NULL, 0);
        sample_add_since(&sample, start);
    }
    report_add_sample(&bench->report,
                      &(struct figure){.name = "fork() from 512 MiB, for comparison", .unit = "ms"},
                      &sample);
    sample_done(&sample);
}

void bench_library(struct bench *bench)
{
    void *memory;

    measure_all(bench, (const char *const[2][WAYS]){
                           {"library, new network, /bin/true", "library, recycled, /bin/true",
                            "library, started ahead, /bin/true"},
                           {"library, new network, static true", "library, recycled, static true",
                            "library, started ahead, static true"}});
    memory = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        bench_fail("no 512 MiB of memory");
    memset(memory, 'x', LARGE);
    measure_all(
        bench, (const char *const[2][WAYS]){{"the same from 512 MiB: new, /bin/true",
                                             "  recycled, /bin/true", "  started ahead, /bin/true"},
                                            {"  new, static true", "  recycled, static true",
                                             "  started ahead, static true"}});
    measure_fork(bench);
    munmap(memory, LARGE);
}
