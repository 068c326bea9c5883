/* What one client costs another: a quiet client's calls alone, and beside each kind of bad
 * neighbour. On few processors a neighbour costs something by running at all, whatever the server
 * does; so the same is done with a server that does nothing (plain_server.h), and what the two
 * differ in is ours. Everything is measured in turns, so that a change of the machine's mood meets
 * all alike. */
#include "neighbour.h"
#include "plain_server.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum {
    TURNS = 10,
    PEACE_US = 100000, /* between two looks whether a server rests */
    NAME_SIZE = 64,
};

/* --- the quiet client --- */

enum { SERVED, PLAIN, GUESTS };

struct guest {
    const char *name;
    const char *sandbox; /* of its commands */
    struct wire_server server;
    struct wire wire;
    unsigned started;
    unsigned terminal;
    unsigned writes;
};

typedef void call_fn(struct guest *guest, const struct bench *bench, struct sample *sample);

static void call_start(struct guest *guest, const struct bench *bench, struct sample *sample)
{
    uint64_t begin = clock_now_ns();

    wire_send(&guest->wire, "process/start",
              "{\"processId\":\"p%u\",\"argv\":[\"/bin/true\"],\"cwd\":\"file://%s\",\"env\":{},"
              "\"tty\":false,\"sandbox\":%s}",
              ++guest->started, bench->ws, guest->sandbox);
    wire_until(&guest->wire, "\"method\":\"process/exited\"");
    sample_add_since(sample, begin);
    wire_until(&guest->wire, "\"method\":\"process/closed\"");
}

static void call_echo(struct guest *guest, const struct bench *bench, struct sample *sample)
{
    uint64_t begin = clock_now_ns();

    wire_send(&guest->wire, "process/write",
              "{\"processId\":\"p%u\",\"chunk\":\"eA==\",\"writeId\":\"%u\"}", guest->terminal,
              ++guest->writes);
    wire_until(&guest->wire, "\"method\":\"process/output\"");
    sample_add_since(sample, begin);
}

static void call_info(struct guest *guest, const struct bench *bench, struct sample *sample)
{
    uint64_t begin = clock_now_ns();
    char answer[32];

    snprintf(answer, sizeof answer, "\"id\":%u,",
             wire_send(&guest->wire, "environment/info", "{}"));
    wire_until(&guest->wire, answer);
    sample_add_since(sample, begin);
}

static const struct call {
    const char *name;
    call_fn *run;
    unsigned weight; /* so many for each start */
} calls[] = {
    {"start", call_start, 1},
    {"echo", call_echo, 5},
    {"info", call_info, 5},
};

enum { CALLS = sizeof calls / sizeof *calls };

static void guest_arrive(struct guest *guest, const struct bench *bench)
{
    wire_open(&guest->wire, &guest->server);
    guest->terminal = ++guest->started;
    wire_send(&guest->wire, "process/start",
              "{\"processId\":\"p%u\",\"argv\":[\"/bin/cat\"],\"cwd\":\"file://%s\",\"env\":{},"
              "\"tty\":true,\"sandbox\":null}",
              guest->terminal, bench->ws);
    wire_until(&guest->wire, "\"result\"");
}

/* What a neighbour has left behind is not measured. */
static void guest_wait_for_peace(const struct guest *guest)
{
    uint64_t before;
    uint64_t now = wire_server_ticks(&guest->server);

    do {
        usleep(PEACE_US);
        before = now;
        now = wire_server_ticks(&guest->server);
    } while (now > before);
}

/* --- */

struct table {
    struct sample samples[NEIGHBOURS][CALLS];
};

static unsigned turns_of(const struct bench *bench)
{
    return bench_is_quick(bench) ? 1 : TURNS;
}

static void measure_turn(struct bench *bench, struct guest *guest, struct table *table)
{
    for (size_t n = 0; n < NEIGHBOURS; n++) {
        pid_t pid = neighbour_start(&neighbours[n], bench, &guest->server);

        for (size_t c = 0; c < CALLS; c++)
            for (unsigned i = 0; i < bench->runs * calls[c].weight / turns_of(bench); i++)
                calls[c].run(guest, bench, &table->samples[n][c]);
        neighbour_stop(pid);
        guest_wait_for_peace(guest);
    }
}

/* A name that lives as long as the report. */
__attribute__((format(printf, 1, 2))) static const char *name_of(const char *fmt, ...)
{
    static char names[3 * GUESTS * NEIGHBOURS * CALLS][NAME_SIZE];
    static size_t len;
    va_list args;

    va_start(args, fmt);
    vsnprintf(names[len], NAME_SIZE, fmt, args);
    va_end(args);
    return names[len++];
}

static void add_times(struct bench *bench, const struct guest *guest, struct sample *sample,
                      size_t n, size_t c)
{
    struct figure figure = {.unit = "ms"};

    figure.name = name_of("%s%s, %s", guest->name, calls[c].name, neighbours[n].name);
    report_add_sample(&bench->report, &figure, sample);
}

static double p99_ratio(struct table *table, size_t n, size_t c)
{
    return sample_quantile(&table->samples[n][c], 0.99) /
           sample_quantile(&table->samples[0][c], 0.99);
}

static void add_ratio(struct bench *bench, struct table tables[GUESTS], size_t n, size_t c)
{
    struct figure figure = {.unit = "x", .runs = tables[SERVED].samples[n][c].len};

    figure.name = name_of("  its p99 against alone");
    figure.value = p99_ratio(&tables[SERVED], n, c);
    figure.goal = GOAL_AT_MOST;
    figure.target = 2;
    report_add(&bench->report, &figure);
    figure.name = name_of("  the same by a server that does nothing");
    figure.value = p99_ratio(&tables[PLAIN], n, c);
    figure.goal = GOAL_NONE;
    report_add(&bench->report, &figure);
}

static void add_figures(struct bench *bench, const struct guest guests[GUESTS],
                        struct table tables[GUESTS])
{
    for (size_t c = 0; c < CALLS; c++) {
        add_times(bench, &guests[PLAIN], &tables[PLAIN].samples[0][c], 0, c);
        for (size_t n = 0; n < NEIGHBOURS; n++) {
            add_times(bench, &guests[SERVED], &tables[SERVED].samples[n][c], n, c);
            if (n)
                add_ratio(bench, tables, n, c);
        }
    }
}

static void guest_leave(struct guest *guest, struct table *table)
{
    wire_close(&guest->wire);
    wire_server_stop(&guest->server);
    for (size_t i = 0; i < NEIGHBOURS * CALLS; i++)
        sample_done(&table->samples[i / CALLS][i % CALLS]);
}

void bench_neighbours(struct bench *bench)
{
    struct guest guests[GUESTS] = {
        [SERVED] = {.name = "", .sandbox = wire_read_only},
        [PLAIN] = {.name = "by a server that does nothing: ", .sandbox = "null"}};
    struct table tables[GUESTS] = {0};

    wire_server_start(&guests[SERVED].server, bench);
    plain_server_start(&guests[PLAIN].server, bench);
    for (int g = 0; g < GUESTS; g++)
        guest_arrive(&guests[g], bench);
    for (unsigned turn = 0; turn < turns_of(bench); turn++)
        for (int g = 0; g < GUESTS; g++)
            measure_turn(bench, &guests[g], &tables[g]);
    add_figures(bench, guests, tables);
    for (int g = 0; g < GUESTS; g++)
        guest_leave(&guests[g], &tables[g]);
}
