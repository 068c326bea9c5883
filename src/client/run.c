/* `run`: a command at the server as if it were here. Its output comes by events, in the order of
 * their numbers; stdin goes the other way; signals become what the protocol has for them:
 *
 *     SIGINT             process/signal interrupt; the second one ends it
 *     SIGTERM, SIGHUP    process/terminate
 *     SIGWINCH           process/resize, on a terminal
 *
 * On a terminal there is no SIGINT: it is raw, and Ctrl-C is a byte for the command's own. The
 * session ends with the connection, and the command with the session, so nothing is left behind
 * when this program is killed; a plain Codex server takes 80 s for it. */
#include "client/client.h"

#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"
#include "client/face.h"
#include "client/follow.h"
#include "client/start.h"
#include "client/writer.h"
#include "loop/loop.h"
#include "process/terminal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PROCESS_ID "run"

enum { GRACE_MS = 5000, STATUS_NO_READER = 128 + SIGPIPE };

struct run {
    const struct client *client;
    const struct client_run *options;
    struct connection *connection;
    struct follow *follow;
    struct writer *writer;
    struct loop_signals *signals;
    struct terminal terminal;
    bool was_interrupted;
};

static void run_done(struct run *run)
{
    terminal_restore(&run->terminal);
    run->client->face->set_raw(false);
    loop_signals_free(run->signals);
    writer_free(run->writer);
    follow_free(run->follow);
    connection_free(run->connection);
}

/* --- signals --- */

static void send_about(struct run *run, const char *method, json_t *params)
{
    const struct connection_request request = {.method = method, .params = params};

    json_object_set_new(params, "processId", json_string(PROCESS_ID));
    connection_send(run->connection, &request);
}

static void run_resize(struct run *run)
{
    struct pty_size size = terminal_size(STDIN_FILENO);

    if (size.rows && size.columns)
        send_about(run, "process/resize",
                   json_pack("{s:i, s:i}", "rows", size.rows, "columns", size.columns));
}

static void run_terminate(struct run *run)
{
    send_about(run, "process/terminate", json_pack("{s:i}", "graceMs", GRACE_MS));
}

static void run_on_signal(void *data, int signal)
{
    struct run *run = data;

    switch (signal) {
    case SIGWINCH:
        run_resize(run);
        return;
    case SIGINT:
        if (!run->was_interrupted) {
            run->was_interrupted = true;
            send_about(run, "process/signal", json_pack("{s:s}", "signal", "interrupt"));
            return;
        }
        send_about(run, "process/terminate", json_object());
        return;
    default:
        run_terminate(run);
    }
}

/* --- the start --- */

static bool has_terminal(const struct run *run)
{
    return run->options->flags & CLIENT_RUN_TTY && isatty(STDIN_FILENO);
}

static int run_start(struct run *run, struct err *err)
{
    const struct start_place place = {
        .id = PROCESS_ID,
        .folder = connection_folder(run->connection),
        .term = getenv("TERM"),
        .size = has_terminal(run) ? terminal_size(STDIN_FILENO) : (struct pty_size){0},
    };
    json_t *params = start_params(run->options, &place, err);
    AUTO_JSON json_t *result = NULL;

    if (!params)
        return -1;
    result = connection_call(run->connection, "process/start", params, err);
    return result ? 0 : err_wrap(err, "starting %s", run->options->argv[0]);
}

static int run_connect(struct run *run, struct err *err)
{
    struct connection_options server = run->client->server;

    server.lifetime_ms = run->options->flags & CLIENT_RUN_DETACHED ? CONNECTION_LEAVES_SESSION
                                                                   : CONNECTION_ENDS_SESSION;
    run->connection = connection_open(&server, err);
    return run->connection ? 0 : -1;
}

/* --- the course --- */

static int run_attach_input(struct run *run, struct err *err)
{
    const struct writer_options writer = {
        .connection = run->connection,
        .face = run->client->face,
        .id = PROCESS_ID,
        .fd = STDIN_FILENO,
        .flags = WRITER_CLOSES | (has_terminal(run) ? WRITER_RAW : 0),
    };
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, 0};

    run->signals =
        loop_signals_new(connection_loop(run->connection), signals, run_on_signal, run, err);
    if (!run->signals)
        return -1;
    if (has_terminal(run)) {
        if (terminal_raw(&run->terminal, STDIN_FILENO, err))
            return -1;
        run->client->face->set_raw(true);
    }
    if (run->options->input == CLIENT_STDIN_NULL)
        return 0;
    run->writer = writer_new(&writer, err);
    return run->writer ? 0 : -1;
}

static void say_denials(const struct run *run)
{
    const json_t *denials = json_object_get(follow_end(run->follow), "denials");

    for (size_t i = 0; i < json_array_size(denials); i++) {
        const json_t *denial = json_array_get(denials, i);
        const char *operation = json_string_value(json_object_get(denial, "operation"));
        const char *path = json_string_value(json_object_get(denial, "path"));
        const char *host = json_string_value(json_object_get(denial, "host"));
        const char *source = json_string_value(json_object_get(denial, "source"));

        if (operation && (!source || !str_eq(source, "host")))
            run->client->face->say("refused by the sandbox: %s %s (--profile or --network can "
                                   "allow it)",
                                   operation,
                                   path   ? path
                                   : host ? host
                                          : "");
    }
}

/* Signals end this program again while the rest is written: its reader may take its time. */
static int run_end(struct run *run, int *ret_status, struct err *err)
{
    loop_signals_free(run->signals);
    run->signals = NULL;
    if (follow_finish(run->follow, err))
        return -1;
    terminal_restore(&run->terminal);
    run->client->face->set_raw(false);
    say_denials(run);
    *ret_status = follow_has_exited(run->follow) ? follow_exit_code(run->follow) : STATUS_NO_READER;
    return 0;
}

static int run_attached(struct run *run, int *ret_status, struct err *err)
{
    const struct follow_options follow = {
        .connection = run->connection,
        .face = run->client->face,
        .id = PROCESS_ID,
        .order = FOLLOW_BY_NUMBER,
    };
    struct err lost;
    int status;

    run->follow = follow_new(&follow, err);
    if (!run->follow || run_start(run, err) || run_attach_input(run, err))
        return -1;
    if (connection_run(run->connection, &lost)) {
        run_end(run, &status, err);
        *err = lost;
        return err_wrap(err, "the command is lost");
    }
    if (!follow_is_closed(run->follow))
        send_about(run, "process/terminate", json_object());
    return run_end(run, ret_status, err);
}

static int run_detached(struct run *run, int *ret_status, struct err *err)
{
    AUTO_JSON json_t *list = NULL;
    struct err why;

    if (run_start(run, err))
        return -1;
    list = connection_call(run->connection, "process/list", json_object(), &why);
    if (!list)
        run->client->face->say("this server keeps the command for about 80 s only");
    printf("%s/%s\n", connection_session(run->connection), PROCESS_ID);
    *ret_status = 0;
    return fflush(stdout) ? err_sys(err, "writing the id") : 0;
}

int client_run(const struct client *client, const struct client_run *options, int *ret_status,
               struct err *err)
{
    AUTO(run_done) struct run run = {.client = client, .options = options, .terminal = {.fd = -1}};

    if (run_connect(&run, err))
        return -1;
    return options->flags & CLIENT_RUN_DETACHED ? run_detached(&run, ret_status, err)
                                                : run_attached(&run, ret_status, err);
}
