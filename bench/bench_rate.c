/* Launches per second, with several commands in flight. */
#include "bench.h"

#include "base/clock.h"

#include <poll.h>

enum { IN_FLIGHT_MAX = 8, LAUNCHES_PER_RUN = 5 };

/* Keeps `in_flight` commands going until `total` have ended; the launches per second. */
static double rate(const struct bench *bench, struct sandbox *sandbox, const char *const *argv,
                   unsigned in_flight, unsigned total)
{
    struct launch launches[IN_FLIGHT_MAX];
    struct pollfd ready[IN_FLIGHT_MAX];
    uint64_t start = clock_now_ns();
    unsigned started = 0;
    unsigned ended = 0;

    for (; started < in_flight; started++)
        run_start(bench, sandbox, argv, &launches[started]);
    while (ended < total) {
        for (unsigned i = 0; i < in_flight; i++)
            ready[i] = (struct pollfd){.fd = launches[i].status, .events = POLLIN};
        poll(ready, in_flight, -1);
        for (unsigned i = 0; i < in_flight; i++) {
            if (!ready[i].revents || !run_poll(&launches[i]))
                continue;
            ended++;
            if (started < total) {
                run_start(bench, sandbox, argv, &launches[i]);
                started++;
            }
        }
    }
    return total / ((double)(clock_now_ns() - start) / CLOCK_NS_PER_S);
}

void bench_rate(struct bench *bench)
{
    const struct {
        const char *name;
        const char *program;
        unsigned in_flight;
        bool cache_idle;
        enum goal goal;
    } cases[] = {
        {"launches, 2 in flight, /bin/true", "/bin/true", 2, true, GOAL_AT_LEAST},
        {"launches, 8 in flight, /bin/true", "/bin/true", 8, true, GOAL_AT_LEAST},
        {"  new networks, 8 in flight, /bin/true", "/bin/true", 8, false, GOAL_NONE},
        {"  8 in flight, static true", bench->static_true, 8, true, GOAL_NONE},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sandbox *sandbox = sandbox_open(bench, cases[i].cache_idle);
        const char *const argv[] = {cases[i].program, NULL};
        unsigned total = bench->runs * LAUNCHES_PER_RUN;

        report_add(&bench->report,
                   &(struct figure){
                       .name = cases[i].name,
                       .unit = "/s",
                       .value = rate(bench, sandbox, argv, cases[i].in_flight, total),
                       .runs = total,
                       .goal = cases[i].goal,
                       .target = 1000,
                   });
        sandbox_free(sandbox);
    }
}
