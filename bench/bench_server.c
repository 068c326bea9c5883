/* `cordon serve` by way of WebSocket over loopback: how long commands take, how many go at a time,
 * how much output, what it costs in memory, and what one client's flood costs another. */
#include "wire.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FLIGHT = 32, FLOOD_BYTES = 200000000, TERMINALS = 1000, WARM = 5 };

struct serving {
    struct bench *bench;
    struct wire_server server;
    struct wire wire;
    unsigned started; /* names processes */
    const char *argv; /* of what is started: JSON */
};

static unsigned start(struct serving *serving, struct wire *wire, const char *sandbox,
                      const char *argv, const char *more)
{
    wire_send(
        wire, "process/start",
        "{\"processId\":\"p%u\",\"argv\":%s,\"cwd\":\"file://%s\",\"env\":{\"PATH\":\"/usr/bin:"
        "/bin\"},\"sandbox\":%s,%s}",
        ++serving->started, argv, serving->bench->ws, sandbox, more);
    return serving->started;
}

static const char true_argv[] = "[\"/bin/true\"]";
static const char pipes[] = "\"tty\":false";

/* From the request to the event; what follows is waited for, but not counted. */
static void run_true(struct serving *serving, struct wire *wire, const char *sandbox,
                     struct sample *sample)
{
    uint64_t begin = clock_now_ns();

    start(serving, wire, sandbox, serving->argv, pipes);
    wire_until(wire, "\"method\":\"process/exited\"");
    sample_add_since(sample, begin);
    wire_until(wire, "\"method\":\"process/closed\"");
}

static void measure_start(struct serving *serving, const char *sandbox, struct figure figure)
{
    struct sample warm = {0};
    struct sample sample = {0};

    for (int i = 0; i < WARM; i++)
        run_true(serving, &serving->wire, sandbox, &warm);
    for (unsigned i = 0; i < serving->bench->runs; i++)
        run_true(serving, &serving->wire, sandbox, &sample);
    figure.unit = "ms";
    if (figure.target > 0) {
        figure.goal = GOAL_AT_MOST;
        figure.p99_target = 6;
        figure.bare = serving->bench->bare;
        figure.bare_there = BARE_THERE;
    }
    report_add_sample(&serving->bench->report, &figure, &sample);
    sample_done(&warm);
    sample_done(&sample);
}

static double rate(struct serving *serving, unsigned count)
{
    unsigned running = 0;
    uint64_t begin = clock_now_ns();

    for (unsigned sent = 0, ended = 0; ended < count; ended++, running--) {
        for (; running < FLIGHT && sent < count; sent++, running++)
            start(serving, &serving->wire, wire_read_only, serving->argv, pipes);
        wire_until(&serving->wire, "\"method\":\"process/closed\"");
    }
    return count / ((double)(clock_now_ns() - begin) / 1e9);
}

static void measure_rate(struct serving *serving, const char *name, enum goal goal)
{
    unsigned count = serving->bench->runs * 5;

    report_add(&serving->bench->report, &(struct figure){.name = name,
                                                         .unit = "/s",
                                                         .value = rate(serving, count),
                                                         .runs = count,
                                                         .goal = goal,
                                                         .target = 1000});
}

/* A program of which the start costs almost nothing: what is left is ours. (To /bin/true its loader
 * adds some CPUID instructions, each of which leaves a virtual machine.) */
static void measure_static(struct serving *serving)
{
    AUTO_FREE char *argv = alloc_strf("[\"%s\"]", serving->bench->static_true);
    const char *usual = serving->argv;

    serving->argv = argv;
    measure_start(serving, "null", (struct figure){.name = "  static true"});
    measure_start(serving, wire_read_only, (struct figure){.name = "  static true, sandboxed"});
    measure_rate(serving, "  static true, sandboxed, 32 in flight", GOAL_NONE);
    serving->argv = usual;
}

static void end_process(struct wire *wire, unsigned process)
{
    wire_send(wire, "process/terminate", "{\"processId\":\"p%u\"}", process);
    wire_until(wire, "\"method\":\"process/closed\"");
}

static void measure_echo(struct serving *serving)
{
    struct wire *wire = &serving->wire;
    struct sample sample = {0};
    unsigned process = start(serving, wire, "null", "[\"/bin/cat\"]", "\"tty\":true");

    wire_until(wire, "\"result\"");
    for (unsigned i = 0; i < serving->bench->runs * 2; i++) {
        uint64_t begin = clock_now_ns();

        wire_send(wire, "process/write",
                  "{\"processId\":\"p%u\",\"chunk\":\"eA==\",\"writeId\":\"%u\"}", process, i);
        wire_until(wire, "\"method\":\"process/output\"");
        sample_add_since(&sample, begin);
    }
    end_process(wire, process);
    report_add_sample(&serving->bench->report,
                      &(struct figure){.name = "server, echo of one byte on a terminal",
                                       .unit = "ms",
                                       .goal = GOAL_AT_MOST,
                                       .target = 0.1},
                      &sample);
    sample_done(&sample);
}

/* --- output --- */

static uint64_t number_behind(const char *message, size_t len, const char *name)
{
    const char *at = memmem(message, len, name, strlen(name));

    if (!at)
        bench_fail("a message without %s", name);
    return strtoull(at + strlen(name), NULL, 10);
}

/* Raw bytes of a base64 text that ends at a quote. */
static uint64_t raw_len(const char *text, const char *end)
{
    uint64_t len = (uint64_t)(end - text) / 4 * 3;

    return len - (end[-1] == '=') - (end > text + 1 && end[-2] == '=');
}

/* Takes every event of the process; each has to be the next. (Of one before, something may still come. The
 * end of this one may be told before the last of its output.) */
static void take_flood(struct wire *wire, unsigned process, uint64_t bytes)
{
    uint64_t total = 0;
    uint64_t seq = 0;
    AUTO_FREE char *own = alloc_strf("\"p%u\"", process);

    for (;;) {
        size_t len;
        const char *message = wire_next(wire, &len);
        const char *chunk = memmem(message, len < 200 ? len : 200, "\"chunk\":\"", 9);

        if (!memmem(message, len < 200 ? len : 200, own, strlen(own)))
            continue;
        if (chunk) {
            const char *end = memchr(chunk + 9, '"', len - (size_t)(chunk + 9 - message));

            if (number_behind(message, 200, "\"seq\":") != ++seq)
                bench_fail("an event is missing");
            total += raw_len(chunk + 9, end);
        } else if (memmem(message, len, "process/exited", 14)) {
            seq++;
        } else if (memmem(message, len, "process/closed", 14)) {
            break;
        }
    }
    if (total != bytes)
        bench_fail("%llu bytes of %llu came", (unsigned long long)total, (unsigned long long)bytes);
}

static char *flood_argv(uint64_t bytes)
{
    return alloc_strf("[\"/usr/bin/head\",\"-c\",\"%llu\",\"/dev/zero\"]",
                      (unsigned long long)bytes);
}

static uint64_t flood_bytes(const struct serving *serving)
{
    return bench_is_quick(serving->bench) ? FLOOD_BYTES / 20 : FLOOD_BYTES;
}

static void add_flow(struct serving *serving, const char *name, uint64_t begin)
{
    double seconds = (double)(clock_now_ns() - begin) / 1e9;

    report_add(&serving->bench->report,
               &(struct figure){.name = name,
                                .unit = "MB/s",
                                .value = (double)flood_bytes(serving) / 1e6 / seconds,
                                .runs = 1,
                                .goal = GOAL_AT_LEAST,
                                .target = 700});
}

static void measure_push(struct serving *serving)
{
    AUTO_FREE char *argv = flood_argv(flood_bytes(serving));
    uint64_t begin = clock_now_ns();

    take_flood(&serving->wire, start(serving, &serving->wire, "null", argv, pipes),
               flood_bytes(serving));
    add_flow(serving, "server, 200 MB of output, pushed", begin);
}

/* One answer to process/read: adds what it holds. true when it is the last. */
static bool take_read(struct wire *wire, uint64_t *total, uint64_t *seq)
{
    size_t len;
    const char *message = wire_next(wire, &len);
    const char *end;

    while (!memmem(message, len < 100 ? len : 100, "\"chunks\":", 9))
        message = wire_next(wire, &len);
    if (memmem(message + (len > 200 ? len - 200 : 0), len > 200 ? 200 : len, "\"lost\"", 6))
        bench_fail("output was lost");
    for (const char *at = message; (at = memmem(at, len - (size_t)(at - message), "{\"seq\":", 7));
         at = end) {
        const char *chunk = strstr(at, "\"chunk\":\"");

        *seq = strtoull(at + 7, NULL, 10);
        end = strchr(chunk + 9, '"');
        *total += raw_len(chunk + 9, end);
    }
    return memmem(message, len, "\"closed\":true", 13);
}

static void measure_pull(struct serving *serving)
{
    struct wire *wire = &serving->wire;
    AUTO_FREE char *argv = flood_argv(flood_bytes(serving));
    uint64_t begin = clock_now_ns();
    uint64_t total = 0;
    uint64_t seq = 0;
    unsigned process = start(serving, wire, "null", argv, "\"tty\":false,\"delivery\":\"pull\"");
    bool is_last = false;

    wire_until(wire, "\"result\"");
    while (!is_last) {
        wire_send(wire, "process/read",
                  "{\"processId\":\"p%u\",\"afterSeq\":%llu,\"waitMs\":10000}", process,
                  (unsigned long long)seq);
        is_last = take_read(wire, &total, &seq);
    }
    if (total != flood_bytes(serving))
        bench_fail("%llu bytes came by process/read", (unsigned long long)total);
    add_flow(serving, "server, 200 MB of output, by process/read", begin);
}

/* --- one client beside others --- */

static double p99_of(struct serving *serving, struct wire *wire)
{
    struct sample sample = {0};
    double value;

    for (unsigned i = 0; i < serving->bench->runs; i++)
        run_true(serving, wire, wire_read_only, &sample);
    value = sample_quantile(&sample, 0.99);
    sample_done(&sample);
    return value;
}

static void measure_neighbours(struct serving *serving)
{
    AUTO_FREE char *argv = flood_argv(FLOOD_BYTES);
    struct wire rude;
    double alone = p99_of(serving, &serving->wire);
    double beside;

    wire_open(&rude, &serving->server);
    start(serving, &rude, "null", argv, pipes);
    wire_until(&rude, "\"method\":\"process/output\"");
    beside = p99_of(serving, &serving->wire);
    report_add(&serving->bench->report,
               &(struct figure){.name = "server, p99 of a start beside one who does not read",
                                .unit = "x",
                                .value = beside / alone,
                                .runs = serving->bench->runs,
                                .goal = GOAL_AT_MOST,
                                .target = 2});
    report_add(&serving->bench->report,
               &(struct figure){.name = "server, resident while 200 MB wait for a slow reader",
                                .unit = "KiB",
                                .value = wire_server_memory(&serving->server, "VmHWM:"),
                                .runs = 1,
                                .goal = GOAL_AT_MOST,
                                .target = 40 << 10});
    wire_close(&rude);
}

static void add_memory(struct serving *serving, const char *name, double target)
{
    report_add(&serving->bench->report,
               &(struct figure){.name = name,
                                .unit = "KiB",
                                .value = wire_server_memory(&serving->server, "VmRSS:"),
                                .runs = 1,
                                .goal = GOAL_AT_MOST,
                                .target = target});
}

static void measure_terminals(struct serving *serving)
{
    struct wire *wire = &serving->wire;
    unsigned count = bench_is_quick(serving->bench) ? TERMINALS / 20 : TERMINALS;

    for (unsigned i = 0; i < count; i++) {
        start(serving, wire, "null", "[\"/bin/cat\"]", "\"tty\":true");
        wire_until(wire, "\"result\"");
    }
    add_memory(serving, "server, resident with 1,000 live terminals", 64 << 10);
}

static void open_serving(struct serving *serving)
{
    wire_server_start(&serving->server, serving->bench);
    wire_open(&serving->wire, &serving->server);
}

static void close_serving(struct serving *serving)
{
    wire_close(&serving->wire);
    wire_server_stop(&serving->server);
}

void bench_server(struct bench *bench)
{
    struct serving serving = {.bench = bench, .argv = true_argv};

    open_serving(&serving);
    add_memory(&serving, "server, resident when idle", 6 << 10);
    measure_start(&serving, "null",
                  (struct figure){.name = "server, start to exited of /bin/true", .target = 0.9});
    measure_start(
        &serving, wire_read_only,
        (struct figure){.name = "server, start to exited of /bin/true, sandboxed", .target = 1.3});
    measure_rate(&serving, "server, sandboxed starts, 32 in flight", GOAL_AT_LEAST);
    measure_static(&serving);
    measure_echo(&serving);
    measure_push(&serving);
    measure_pull(&serving);
    close_serving(&serving);
    open_serving(&serving);
    measure_neighbours(&serving);
    close_serving(&serving);
    open_serving(&serving);
    measure_terminals(&serving);
    close_serving(&serving);
}
