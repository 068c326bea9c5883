/* `cordon mcp` over standard input and output: what a tool call costs above the engine's own call, which `cordon serve` does over
 * the same kind of pipes. The two take turns, so that both have the same machine. */
#include "bench.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/fd.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WARM = 5, LINE_MAX_BYTES = 1 << 16 };

/* A program that answers lines with lines. */
struct lines {
    pid_t pid;
    int in;
    FILE *out;
    char line[LINE_MAX_BYTES];
    unsigned asked;
};

static void lines_start(struct lines *lines, const struct bench *bench, const char *const *argv)
{
    int in[2];
    int out[2];

    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
        bench_fail("no pipe");
    lines->pid = run_spawn(bench, argv, in[0], out[1]);
    close(in[0]);
    close(out[1]);
    lines->in = in[1];
    lines->out = fdopen(out[0], "r");
}

static void lines_stop(struct lines *lines)
{
    close(lines->in);
    fclose(lines->out);
    kill(lines->pid, SIGKILL);
    waitpid(lines->pid, NULL, 0);
}

static void send_line(struct lines *lines, const char *text)
{
    struct err err;

    bench_check(fd_write_all(lines->in, text, strlen(text), &err), &err);
}

/* Sends a request, and waits for the answer. */
static void ask(struct lines *lines, const char *request, const char *wanted)
{
    AUTO_FREE char *id = alloc_strf("\"id\":%u,", ++lines->asked);
    AUTO_FREE char *text = alloc_strf("{\"jsonrpc\":\"2.0\",%s%s}\n", id, request);

    send_line(lines, text);
    do {
        if (!fgets(lines->line, sizeof lines->line, lines->out))
            bench_fail("no answer to %s", text);
    } while (!strstr(lines->line, "\"id\":")); /* it is told nothing else that has one */
    if (!strstr(lines->line, wanted))
        bench_fail("%s was answered with %s", text, lines->line);
}

/* --- one command --- */

static void open_serve(struct lines *serve, const struct bench *bench)
{
    const char *const argv[] = {bench->cordon, "serve", "--listen", "stdio",
                                "--log-level", "error", NULL};

    lines_start(serve, bench, argv);
    ask(serve, "\"method\":\"initialize\",\"params\":{\"clientName\":\"bench\"}", "sessionId");
    send_line(serve, "{\"method\":\"initialized\"}\n");
}

static void open_mcp(struct lines *mcp, const struct bench *bench)
{
    const char *const argv[] = {bench->cordon, "mcp", "--directory", bench->ws, NULL};

    lines_start(mcp, bench, argv);
    ask(mcp,
        "\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":"
        "{}}",
        "serverInfo");
    send_line(mcp, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
}

static void measure(struct bench *bench, struct lines *serve, struct lines *mcp)
{
    AUTO_FREE char *exec =
        alloc_strf("\"method\":\"session/"
                   "exec\",\"params\":{\"cmd\":\"true\",\"login\":false,\"cwd\":\"file://%s\","
                   "\"sandbox\":{\"profile\":null,\"cwd\":\"file://%s\"}}",
                   bench->ws, bench->ws);
    static const char call[] =
        "\"method\":\"tools/call\",\"params\":{\"name\":\"exec_command\",\"arguments\":"
        "{\"cmd\":\"true\",\"login\":false}}";
    AUTO(sample_done) struct sample engine = {0};
    AUTO(sample_done) struct sample tool = {0};

    for (unsigned i = 0; i < bench->runs + WARM; i++) {
        uint64_t start = clock_now_ns();

        ask(serve, exec, "\"exitCode\":0");
        if (i >= WARM)
            sample_add_since(&engine, start);
        start = clock_now_ns();
        ask(mcp, call, "\"exit_code\":0");
        if (i >= WARM)
            sample_add_since(&tool, start);
    }
    report_add_sample(&bench->report,
                      &(struct figure){.name = "session/exec of true, over pipes", .unit = "ms"},
                      &engine);
    report_add_sample(&bench->report,
                      &(struct figure){.name = "  as a tool call of MCP", .unit = "ms"}, &tool);
    report_add(&bench->report,
               &(struct figure){.name = "  what that is above it",
                                .unit = "ms",
                                .value = sample_median(&tool) - sample_median(&engine),
                                .runs = tool.len,
                                .goal = GOAL_AT_MOST,
                                .target = 0.3});
}

void bench_mcp(struct bench *bench)
{
    struct lines *serve = alloc_zero(1, sizeof *serve);
    struct lines *mcp = alloc_zero(1, sizeof *mcp);

    open_serve(serve, bench);
    open_mcp(mcp, bench);
    measure(bench, serve, mcp);
    lines_stop(serve);
    lines_stop(mcp);
    free(serve);
    free(mcp);
}
