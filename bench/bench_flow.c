/* What a session costs of the speed of its program's output, and of the time that a byte takes
 * there and back, beside a bare loop that does nothing but read. */
#include "bench.h"
#include "talk.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"

#include <fcntl.h>
#include <unistd.h>

enum {
    WRITTEN = 200 << 20,
    WRITTEN_QUICK = 20 << 20,
    ECHOES_SHARE = 10, /* echoes for each run */
};

#define BYE "." /* ends bench/static_echo.c */

/* --- 200 MB --- */

static uint64_t read_all_bare(const struct bench *bench, const char *const *argv, bool is_tty)
{
    static char bytes[TALK_READ_SIZE];
    struct bare bare;
    uint64_t total = 0;
    ssize_t n;

    bare_start(&bare, bench, argv, is_tty);
    while ((n = read(bare.fd, bytes, sizeof bytes)) > 0)
        total += (uint64_t)n;
    bare_finish(&bare);
    return total;
}

/* VmHWM begins anew (proc(5), clear_refs). */
static void memory_forget_peak(void)
{
    AUTO_CLOSE int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, "5", 1) != 1)
        bench_fail("/proc/self/clear_refs cannot be written");
}

struct flow {
    struct sample bare;
    struct sample session;
    double memory; /* at most, above what it was before, KiB */
};

static double rate(uint64_t bytes, uint64_t start_ns)
{
    return (double)bytes / (1 << 20) / ((double)(clock_now_ns() - start_ns) / CLOCK_NS_PER_S);
}

static void flow_measure(const struct bench *bench, struct cordon_engine *engine,
                         const char *const *argv, bool is_tty, struct flow *flow)
{
    uint64_t start = clock_now_ns();
    uint64_t total = read_all_bare(bench, argv, is_tty);
    struct talk talk;
    double before;

    sample_add(&flow->bare, rate(total, start));
    memory_forget_peak();
    before = bench_memory_now("VmRSS");
    start = clock_now_ns();
    talk_start(&talk, engine, argv, is_tty ? CORDON_TTY : 0, NULL);
    talk_finish(&talk);
    sample_add(&flow->session, rate(talk.total, start));
    if (talk.total != total)
        bench_fail("a session gave %llu bytes and a bare loop %llu", (unsigned long long)talk.total,
                   (unsigned long long)total);
    before = bench_memory_now("VmHWM") - before;
    flow->memory = before > flow->memory ? before : flow->memory;
}

/* Four KiB at a time is what stdio writes. A program that fills the pipe with each write is a race
 * with the scheduler, in which a bare loop is a tenth or ten times as fast from one run to the
 * next: it is shown, and has no target. */
static const struct way {
    const char *block;
    int turns; /* a terminal takes its time */
    bool is_tty;
    enum goal goal;
    double target;
    const char *names[3];
} ways[] = {
    {"4096",
     9,
     false,
     GOAL_AT_LEAST,
     0.8,
     {"200 MB by a pipe, bare", "  by a session", "  session / bare"}},
    {"4096",
     5,
     true,
     GOAL_AT_LEAST,
     0.9,
     {"200 MB by a terminal, bare", "  by a session", "  session / bare"}},
    {"65536",
     9,
     false,
     GOAL_NONE,
     0,
     {"200 MB in writes of 64 KiB, bare", "  by a session", "  session / bare"}},
};

enum { WAYS = sizeof ways / sizeof *ways };

static void flow_report(struct bench *bench, const struct way *way, struct flow *flow)
{
    struct figure figure = {.unit = "MiB/s", .name = way->names[0]};

    report_add_sample(&bench->report, &figure, &flow->bare);
    figure.name = way->names[1];
    report_add_sample(&bench->report, &figure, &flow->session);
    report_add(&bench->report,
               &(struct figure){.name = way->names[2],
                                .unit = "x",
                                .value = sample_median(&flow->session) / sample_median(&flow->bare),
                                .runs = flow->bare.len,
                                .goal = way->goal,
                                .target = way->target});
    sample_done(&flow->bare);
    sample_done(&flow->session);
}

void bench_flow(struct bench *bench, struct cordon_engine *engine)
{
    AUTO_FREE char *size = alloc_strf("%d", bench_is_quick(bench) ? WRITTEN_QUICK : WRITTEN);
    struct flow flows[WAYS] = {{.memory = 0}};
    double memory = 0;

    for (int i = 0; i < WAYS; i++) {
        const char *const argv[] = {bench->static_write, size, ways[i].block, NULL};

        for (int turn = 0; turn < (bench_is_quick(bench) ? 1 : ways[i].turns); turn++)
            flow_measure(bench, engine, argv, ways[i].is_tty, &flows[i]);
        memory = flows[i].memory > memory ? flows[i].memory : memory;
        flow_report(bench, &ways[i], &flows[i]);
    }
    report_add(&bench->report, &(struct figure){.name = "memory for it, above idle",
                                                .unit = "KiB",
                                                .value = memory,
                                                .runs = WAYS,
                                                .goal = GOAL_AT_MOST,
                                                .target = 8 << 10});
}

/* --- one byte there and back --- */

/* How long the bare one takes, in microseconds. */
static double echo_bare(const struct bare *bare)
{
    uint64_t start = clock_now_ns();
    char byte;

    if (write(bare->fd, "x", 1) != 1 || read(bare->fd, &byte, 1) != 1)
        bench_fail("no echo");
    return (double)(clock_now_ns() - start) / 1000;
}

static double echo_session(struct talk *talk)
{
    uint64_t start = clock_now_ns();
    uint64_t before = talk->total;
    struct cordon_error error;

    talk_check(cordon_session_write(talk->session, "x", 1, &error), &error);
    while (talk->total == before)
        talk_turn(talk->engine);
    return (double)(clock_now_ns() - start) / 1000;
}

/* In turns, one by one: whether the kernel moves a byte on this processor or wakes another one for
 * it makes a difference of ten, and lasts for a while. */
static void take_turns(unsigned count, const struct bare *bare, struct talk *talk,
                       struct sample *ret_bare, struct sample *ret_session)
{
    char first;

    if (read(bare->fd, &first, 1) != 1)
        bench_fail("no echo");
    while (!talk->total)
        talk_turn(talk->engine);
    for (unsigned i = 0; i < count; i++) {
        sample_add(ret_bare, echo_bare(bare));
        sample_add(ret_session, echo_session(talk));
    }
}

void bench_echo(struct bench *bench, struct cordon_engine *engine)
{
    /* The filter on the program's own system calls would be measured, too. */
    const struct cordon_policy outside = {.size = sizeof outside,
                                          .sandbox = CORDON_SANDBOX_DISABLED};
    const char *const argv[] = {bench->static_echo, NULL};
    AUTO(sample_done) struct sample alone = {0};
    AUTO(sample_done) struct sample session = {0};
    struct cordon_error error;
    struct bare bare;
    struct talk talk;

    bare_start(&bare, bench, argv, true);
    talk_start(&talk, engine, argv, CORDON_TTY, &outside);
    take_turns(bench->runs * ECHOES_SHARE, &bare, &talk, &alone, &session);
    if (write(bare.fd, BYE, 1) != 1)
        bench_fail("no echo");
    bare_finish(&bare);
    talk_check(cordon_session_write(talk.session, BYE, 1, &error), &error);
    talk_finish(&talk);
    report_add_sample(
        &bench->report,
        &(struct figure){.name = "a byte there and back, bare terminal", .unit = "us"}, &alone);
    report_add_sample(&bench->report, &(struct figure){.name = "  by a session", .unit = "us"},
                      &session);
    report_add(&bench->report,
               &(struct figure){.name = "  session / bare",
                                .unit = "x",
                                .value = sample_median(&session) / sample_median(&alone),
                                .runs = session.len,
                                .goal = GOAL_AT_MOST,
                                .target = 1.3});
}
