/* Sessions by the calls of cordon.h: what one costs more than a command that is run to its end, and
 * what a thousand of them cost that do nothing. */
#include "bench.h"
#include "talk.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { LIVE = 1000, LIVE_QUICK = 40, WARM_UP = 5 };

static struct cordon_engine *engine;

bool bench_is_quick(const struct bench *bench)
{
    return bench->runs < LIVE_QUICK;
}

double bench_memory_now(const char *name)
{
    AUTO(buf_done) struct buf text = {0};
    const char *line;
    struct err err;
    double kib = 0;

    bench_check(fd_read_file("/proc/self/status", 1 << 16, &text, &err), &err);
    line = strstr(text.data, name);
    if (!line || sscanf(line + strlen(name), ": %lf kB", &kib) != 1)
        bench_fail("/proc/self/status has no %s", name);
    return kib;
}

/* --- from start to exit --- */

static void run_once(const char *const *argv)
{
    struct cordon_run_options options = {.size = sizeof options, .argv = argv};
    struct cordon_result *result;
    struct cordon_error error;

    talk_check(cordon_run(engine, &options, &result, &error), &error);
    if (result->outcome != CORDON_RUN_ENDED || result->end->exit_code)
        bench_fail("%s did not work", argv[0]);
    cordon_result_free(result);
}

static void measure_start(struct bench *bench)
{
    const char *const argv[] = {"/bin/true", NULL};
    AUTO(sample_done) struct sample run = {0};
    AUTO(sample_done) struct sample session = {0};

    for (unsigned i = 0; i < bench->runs + WARM_UP; i++) {
        uint64_t start = clock_now_ns();
        struct talk talk;

        run_once(argv);
        if (i >= WARM_UP)
            sample_add_since(&run, start);
        start = clock_now_ns();
        talk_start(&talk, engine, argv, 0, NULL);
        talk_finish(&talk);
        if (i >= WARM_UP)
            sample_add_since(&session, start);
    }
    report_add_sample(&bench->report,
                      &(struct figure){.name = "cordon_run() of /bin/true", .unit = "ms"}, &run);
    report_add_sample(&bench->report,
                      &(struct figure){.name = "  a session of it, start to end", .unit = "ms"},
                      &session);
    report_add(&bench->report,
               &(struct figure){.name = "  session / run",
                                .unit = "x",
                                .value = sample_median(&session) / sample_median(&run),
                                .runs = session.len,
                                .goal = GOAL_AT_MOST,
                                .target = 1.1});
}

/* --- a thousand at once --- */

static void on_answer(void *data, const struct cordon_answer *answer)
{
    ++*(int *)data;
}

static void start_live(const struct bench *bench, int count)
{
    AUTO_FREE char *cmd = alloc_strf("echo x; exec %s", bench->static_pause);
    const struct cordon_pace pace = {.size = sizeof pace, .until = CORDON_UNTIL_TEXT, .text = "x"};
    const struct cordon_exec exec = {.size = sizeof exec,
                                     .cmd = cmd,
                                     .shell = "/bin/sh",
                                     .no_login = 1,
                                     .flags = CORDON_TTY,
                                     .pace = &pace};
    struct cordon_error error;

    for (int i = 0; i < count; i++) {
        int answered = 0;

        talk_check(cordon_exec_command(engine, &exec, on_answer, &answered, NULL, &error), &error);
        while (!answered)
            talk_turn(engine);
    }
    if (cordon_list(engine, 0, NULL, 0) != (size_t)count)
        bench_fail("not all of the sessions run");
}

static uint64_t cpu_ns(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * CLOCK_NS_PER_S +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

static double idle_for_a_second(void)
{
    const uint64_t until = clock_now_ns() + CLOCK_NS_PER_S;
    const uint64_t before = cpu_ns();
    struct cordon_error error;

    for (uint64_t now = clock_now_ns(); now < until; now = clock_now_ns())
        talk_check(cordon_wait(engine, (int)((until - now) / CLOCK_NS_PER_MS) + 1, &error), &error);
    return (double)(cpu_ns() - before) / CLOCK_NS_PER_MS;
}

static void measure_live(struct bench *bench)
{
    const int count = bench_is_quick(bench) ? LIVE_QUICK : LIVE;
    double before = bench_memory_now("VmRSS");
    struct figure figure = {.runs = (size_t)count, .goal = GOAL_AT_MOST};
    uint64_t start;

    start_live(bench, count);
    figure.name = "1,000 sessions on terminals: memory of each";
    figure.unit = "KiB";
    figure.value = (bench_memory_now("VmRSS") - before) / count;
    figure.target = 40;
    report_add(&bench->report, &figure);
    figure.name = "  processor time while nothing happens, 1 s";
    figure.unit = "ms";
    figure.value = idle_for_a_second();
    figure.target = 1;
    report_add(&bench->report, &figure);
    start = clock_now_ns();
    cordon_terminate_all(engine, 0, 2000);
    while (cordon_list(engine, 0, NULL, 0))
        talk_turn(engine);
    figure.name = "  terminate all";
    figure.value = (double)(clock_now_ns() - start) / CLOCK_NS_PER_MS;
    figure.target = 2000;
    report_add(&bench->report, &figure);
}

/* --- */

static void raise_descriptors(void)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

void bench_sessions(struct bench *bench)
{
    const struct cordon_policy policy = {
        .size = sizeof policy, .workspace = bench->ws, .sandbox = CORDON_SANDBOX_REQUIRE};
    const struct cordon_engine_options options = {.size = sizeof options,
                                                  .policy = &policy,
                                                  .max_sessions = LIVE,
                                                  .launcher = bench->launcher};
    struct cordon_error error;

    raise_descriptors();
    talk_check(cordon_open(&options, &engine, &error), &error);
    measure_start(bench);
    bench_echo(bench, engine);
    bench_flow(bench, engine);
    measure_live(bench);
    cordon_close(engine);
}
