/* `run`: a command at the server as if it were here. Its output comes by events, in the order of
 * their numbers; stdin goes the other way; signals become what the protocol has for them:
 *
 *     SIGINT             process/signal interrupt; the second one ends it
 *     SIGTERM, SIGHUP    process/terminate
 *     SIGWINCH           process/resize, on a terminal
 *
 * On a terminal there is no SIGINT: it is raw, and Ctrl-C is a byte for the command's own. The
 * session ends with the connection, and the command with the session, so nothing is left behind
 * when this program is killed; a plain Codex server takes 80 s for it.
 *
 * The sandbox is described in the shape that an unmodified Codex client sends, so any exec server
 * understands it, and there is one unless the person asks for none by name. The environment is the
 * server's, without what looks like a secret. */
#include "client/run.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"
#include "client/follow.h"
#include "client/remote_file.h"
#include "client/stdin_sender.h"
#include "loop/loop.h"
#include "policy/profile.h"
#include "policy/profile_json.h"
#include "process/terminal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROCESS_ID "run"

enum { GRACE_MS = 5000, STATUS_NO_READER = 128 + SIGPIPE };

/* --- the parameters of process/start --- */

static json_t *argv_to_json(char *const *argv, struct err *err)
{
    AUTO_JSON json_t *json = json_array();

    for (size_t i = 0; argv[i]; i++) {
        if (json_array_append_new(json, json_string(argv[i])) == 0)
            continue;
        err_set(err, ERR_INVALID,
                "argument %zu of the command is no UTF-8; only that goes over "
                "the wire",
                i);
        return NULL;
    }
    return TAKE_PTR(json);
}

static int env_add(json_t *env, const char *assignment, struct err *err)
{
    const char *equals = strchr(assignment, '=');
    AUTO_FREE char *name =
        alloc_strn(assignment, equals ? (size_t)(equals - assignment) : strlen(assignment));
    const char *value = equals ? equals + 1 : getenv(name);

    if (!*name)
        return err_set(err, ERR_INVALID, "--env \"%s\" has no name; NAME=VALUE or NAME is right",
                       assignment);
    if (value && json_object_set_new(env, name, json_string(value)))
        return err_set(err, ERR_INVALID, "--env %s: only UTF-8 goes over the wire", name);
    return 0;
}

/* Laid over the server's own. */
static json_t *env_to_json(const struct client_run *options, const struct start_context *context,
                           struct err *err)
{
    AUTO_JSON json_t *env = json_object();

    if (options->flags & CLIENT_RUN_TTY && context->term)
        json_object_set_new(env, "TERM", json_string(context->term));
    for (size_t i = 0; options->env && options->env[i]; i++)
        if (env_add(env, options->env[i], err))
            return NULL;
    return TAKE_PTR(env);
}

static int sandbox_to_json(const struct client_run *options, const char *cwd, json_t **ret,
                           struct err *err)
{
    const char *name = options->profile ? options->profile : "workspace-write";
    AUTO(profile_done) struct profile profile = {0};

    if (!profile_init_builtin(&profile, name))
        return err_set(err, ERR_INVALID,
                       "--profile \"%s\": read-only, workspace-write or danger-full-access is "
                       "right; profiles of a config file are for this machine",
                       name);
    if (profile.kind == PROFILE_DISABLED) {
        *ret = json_null();
        return 0;
    }
    if (options->network)
        profile.network =
            str_eq(options->network, "enabled") ? NETWORK_ENABLED : NETWORK_RESTRICTED;
    *ret = json_pack("{s:o, s:s, s:s, s:[s]}", "permissions", profile_to_json(&profile),
                     "windowsSandboxLevel", "disabled", "cwd", cwd, "workspaceRoots", cwd);
    return 0;
}

static void add_terminal(const struct start_context *context, json_t *params)
{
    json_object_set_new(params, "tty", json_true());
    if (!context->size.rows || !context->size.columns)
        return;
    json_object_set_new(params, "rows", json_integer(context->size.rows));
    json_object_set_new(params, "columns", json_integer(context->size.columns));
}

json_t *start_params(const struct client_run *options, const struct start_context *context,
                     struct err *err)
{
    AUTO_FREE char *cwd = remote_path_uri(context->dir, options->cwd, err);
    AUTO_JSON json_t *argv = NULL;
    AUTO_JSON json_t *env = NULL;
    AUTO_JSON json_t *params = NULL;
    json_t *sandbox = NULL;

    if (!cwd)
        return NULL;
    argv = argv_to_json(options->argv, err);
    env = argv ? env_to_json(options, context, err) : NULL;
    if (!env || sandbox_to_json(options, cwd, &sandbox, err))
        return NULL;
    params =
        json_pack("{s:s, s:O, s:s, s:O, s:b, s:b, s:o, s:{s:s, s:b, s:[], s:{}, s:[]}}",
                  "processId", context->id, "argv", argv, "cwd", cwd, "env", env, "tty", 0,
                  "pipeStdin", options->input == CLIENT_STDIN_PIPE, "sandbox", sandbox, "envPolicy",
                  "inherit", "all", "ignoreDefaultExcludes", 0, "exclude", "set", "includeOnly");
    if (options->flags & CLIENT_RUN_TTY)
        add_terminal(context, params);
    return TAKE_PTR(params);
}

/* --- the command --- */

struct run {
    const struct client *client;
    const struct client_run *options;
    struct connection *connection;
    struct follow *follow;
    struct stdin_sender *sender;
    struct loop_signals *signals;
    struct terminal terminal;
    bool was_interrupted;
};

static void run_done(struct run *run)
{
    terminal_restore(&run->terminal);
    run->client->console->set_raw(false);
    loop_signals_free(run->signals);
    stdin_sender_free(run->sender);
    follow_free(run->follow);
    connection_free(run->connection);
}

/* --- signals --- */

static void run_resize(struct run *run)
{
    struct pty_size size = terminal_size(STDIN_FILENO);

    if (size.rows && size.columns)
        connection_send_about(run->connection, PROCESS_ID, "process/resize",
                              json_pack("{s:i, s:i}", "rows", size.rows, "columns", size.columns));
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
            connection_send_about(run->connection, PROCESS_ID, "process/signal",
                                  json_pack("{s:s}", "signal", "interrupt"));
            return;
        }
        connection_send_about(run->connection, PROCESS_ID, "process/terminate", json_object());
        return;
    default:
        connection_send_about(run->connection, PROCESS_ID, "process/terminate",
                              json_pack("{s:i}", "graceMs", GRACE_MS));
    }
}

/* --- the start --- */

static bool has_terminal(const struct run *run)
{
    return run->options->flags & CLIENT_RUN_TTY && isatty(STDIN_FILENO);
}

static int run_start(struct run *run, struct err *err)
{
    const struct start_context context = {
        .id = PROCESS_ID,
        .dir = connection_dir(run->connection),
        .term = getenv("TERM"),
        .size = has_terminal(run) ? terminal_size(STDIN_FILENO) : (struct pty_size){0},
    };
    json_t *params = start_params(run->options, &context, err);
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
    const struct stdin_sender_options sender = {
        .connection = run->connection,
        .console = run->client->console,
        .id = PROCESS_ID,
        .fd = STDIN_FILENO,
        .flags = STDIN_SENDER_CLOSES | (has_terminal(run) ? STDIN_SENDER_RAW : 0),
    };
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, 0};

    run->signals =
        loop_signals_new(connection_loop(run->connection), signals, run_on_signal, run, err);
    if (!run->signals)
        return -1;
    if (has_terminal(run)) {
        if (terminal_raw(&run->terminal, STDIN_FILENO, err))
            return -1;
        run->client->console->set_raw(true);
    }
    if (run->options->input == CLIENT_STDIN_NULL)
        return 0;
    run->sender = stdin_sender_new(&sender, err);
    return run->sender ? 0 : -1;
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
            run->client->console->say("refused by the sandbox: %s %s (--profile or --network can "
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
    run->client->console->set_raw(false);
    say_denials(run);
    *ret_status = follow_has_exited(run->follow) ? follow_exit_code(run->follow) : STATUS_NO_READER;
    return 0;
}

static int run_attached(struct run *run, int *ret_status, struct err *err)
{
    const struct follow_options follow = {
        .connection = run->connection,
        .console = run->client->console,
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
        connection_send_about(run->connection, PROCESS_ID, "process/terminate", json_object());
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
        run->client->console->say("this server keeps the command for about 80 s only");
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
