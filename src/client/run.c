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
 * The sandbox is a profile of the server's user, by its name or as the configuration there says, and the
 * rules there count, as if `cordon run` were called there. To another exec server than Cordon it is
 * described in the shape that an unmodified Codex client sends. There is one unless the person asks for
 * none by name. The environment is the
 * server's, without what looks like a secret. */
#include "client/run.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"
#include "client/follow.h"
#include "client/questions.h"
#include "client/remote_file.h"
#include "client/stdin_sender.h"
#include "executor/execution_report.h"
#include "policy/profile.h"
#include "policy/profile_json.h"
#include "process/terminal.h"
#include "rpc/message.h"
#include "timeline/timeline.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROCESS_ID "run"

enum {
    GRACE_MS = 5000,
    STATUS_NO_READER = 128 + SIGPIPE,
    STATUS_FORBIDDEN = 126,
    STATUS_NOT_FOUND = 127
};

/* --- the parameters of process/start --- */

/* Laid over the server's own. */
static int env_add(json_t *env, const char *assignment, struct err *err)
{
    const char *equals = strchr(assignment, '=');
    AUTO_FREE char *name =
        alloc_strn(assignment, equals ? (size_t)(equals - assignment) : strlen(assignment));
    const char *value = equals ? equals + 1 : getenv(name);

    if (!*name)
        return err_set(err, ERR_INVALID, "--env \"%s\" has no name; NAME=VALUE or NAME is right",
                       assignment);
    if (!value)
        return err_set(err, ERR_INVALID, "--env: %s is not set here; give it a value: %s=VALUE",
                       name, name);
    if (json_object_set_new(env, name, json_string(value)))
        return err_set(err, ERR_INVALID, "--env %s: only UTF-8 goes over the wire", name);
    return 0;
}

/* For an exec server that only understands what an unmodified Codex client sends. */
static int plain_to_json(const struct client_run *options, const char *cwd, json_t **ret,
                         struct err *err)
{
    const char *name = options->profile ? options->profile : "workspace-write";
    AUTO(profile_done) struct profile profile = {0};

    if (options->watch || options->judge || options->git || options->mode || options->has_protect ||
        options->execution || (options->deny && *options->deny) ||
        (options->readable && *options->readable) || (options->writable && *options->writable) ||
        (options->sockets && *options->sockets) || (options->presets && *options->presets) ||
        (options->hosts && network_policy_is_given(options->hosts)))
        return err_set(err, ERR_UNSUPPORTED,
                       "this server is no Cordon of this version: of what is allowed and asked it "
                       "takes --profile and --network only");
    if (!profile_init_builtin(&profile, name))
        return err_set(err, ERR_INVALID,
                       "--profile \"%s\": this server knows read-only, workspace-write and "
                       "danger-full-access only",
                       name);
    if (profile.kind == PROFILE_DISABLED) {
        *ret = json_null();
        return 0;
    }
    if (options->network &&
        (str_eq(options->network, "proxied") || str_eq(options->network, "host")))
        return err_set(
            err, ERR_UNSUPPORTED,
            "this server is no Cordon of this version: --network is restricted or enabled there");
    if (options->network)
        profile.network =
            str_eq(options->network, "enabled") ? NETWORK_ENABLED : NETWORK_RESTRICTED;
    *ret = json_pack("{s:o, s:s, s:s, s:[s]}", "permissions", profile_to_json(&profile),
                     "windowsSandboxLevel", "disabled", "cwd", cwd, "workspaceRoots", cwd);
    return 0;
}

/* NULL: none was said. */
static json_t *env_policy(const struct client_run *options, struct err *err)
{
    AUTO_JSON json_t *json = json_pack("{s:s, s:b, s:[], s:{}, s:[]}", "inherit",
                                       options->inherit ? options->inherit : "all",
                                       "ignoreDefaultExcludes", 0, "exclude", "set", "includeOnly");

    if (client_add_texts(json, "exclude", options->env_exclude, err) ||
        client_add_texts(json, "includeOnly", options->env_include, err))
        return NULL;
    return json_incref(json);
}

/* What process/start and exec/run have in common. */
static json_t *common_params(const struct client_run *options, const struct start_context *context,
                             struct err *err)
{
    bool has_tty = options->flags & CLIENT_RUN_TTY;
    AUTO_FREE char *cwd = remote_path_uri(context->dir, options->cwd, err);
    AUTO_JSON json_t *argv = json_array();
    AUTO_JSON json_t *env = json_object();
    json_t *sandbox = NULL;
    json_t *params;

    if (!cwd)
        return NULL;
    for (size_t i = 0; options->argv[i]; i++)
        if (json_array_append_new(argv, json_string(options->argv[i]))) {
            err_set(err, ERR_INVALID,
                    "argument %zu of the command is no UTF-8; only that goes over the wire", i);
            return NULL;
        }
    if (has_tty && context->term)
        json_object_set_new(env, "TERM", json_string(context->term));
    for (size_t i = 0; options->env && options->env[i]; i++)
        if (env_add(env, options->env[i], err))
            return NULL;
    if ((context->knows_profiles ? client_run_sandbox : plain_to_json)(options, cwd, &sandbox, err))
        return NULL;
    params =
        json_pack("{s:O, s:s, s:O, s:b, s:b, s:o}", "argv", argv, "cwd", cwd, "env", env, "tty",
                  has_tty, "pipeStdin", options->input == CLIENT_STDIN_PIPE, "sandbox", sandbox);
    if (has_tty && context->size.rows && context->size.columns) {
        json_object_set_new(params, "rows", json_integer(context->size.rows));
        json_object_set_new(params, "columns", json_integer(context->size.columns));
    }
    return params;
}

json_t *start_params(const struct client_run *options, const struct start_context *context,
                     struct err *err)
{
    AUTO_JSON json_t *params = common_params(options, context, err);
    json_t *policy = params ? env_policy(options, err) : NULL;

    if (!policy)
        return NULL;
    json_object_set_new(params, "processId", json_string(context->id));
    json_object_set_new(params, "envPolicy", policy);
    return json_incref(params);
}

static json_t *topics_to_json(unsigned topics)
{
    static const struct {
        unsigned topic;
        const char *word;
    } words[] = {{TIMELINE_FILES, "files"}, {TIMELINE_NETWORK, "network"}, {TIMELINE_EXEC, "exec"}};
    json_t *list = json_array();

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (topics & words[i].topic)
            json_array_append_new(list, json_string(words[i].word));
    return list;
}

static bool has_env_policy(const struct client_run *options)
{
    return options->inherit || (options->env_include && *options->env_include) ||
           (options->env_exclude && *options->env_exclude);
}

/* What is not given is left to the server. */
static void set_limits(json_t *params, const struct resource_limits *limits)
{
    static const char *const names[LIMIT_COUNT] = {
        [LIMIT_MEMORY] = "maxMemoryBytes", [LIMIT_CPU_TIME] = "maxCpuTimeMs",
        [LIMIT_PIDS] = "maxPids",          [LIMIT_FILE_SIZE] = "maxFileBytes",
        [LIMIT_FILES] = "maxFiles",        [LIMIT_ADDRESS_SPACE] = "maxAddressSpaceBytes",
    };

    for (int i = 0; i < LIMIT_COUNT; i++) {
        const uint64_t unit = i == LIMIT_CPU_TIME ? CLOCK_NS_PER_MS : 1;
        uint64_t value = limits->of[i] == LIMIT_NONE ? 0 : (limits->of[i] - 1) / unit + 1;

        if (limits->of[i])
            json_object_set_new(params, names[i], json_integer((json_int_t)value));
    }
}

json_t *exec_params(const struct client_run *options, const struct start_context *context,
                    struct err *err)
{
    const struct client_execution *wanted = options->execution;
    AUTO_JSON json_t *params = common_params(options, context, err);
    AUTO_JSON json_t *more = NULL;
    json_t *policy;

    if (!params)
        return NULL;
    if (has_env_policy(options)) {
        policy = env_policy(options, err);
        if (!policy)
            return NULL;
        json_object_set_new(params, "envPolicy", policy);
    }
    more = json_pack("{s:s, s:s, s:b, s:I, s:I, s:I, s:o, s:s, s:b}", "runId", context->id,
                     "approvalPolicy", wanted->approval ? wanted->approval : "forbids-only",
                     "yesMeansUnsandboxed", wanted->yes_means_unsandboxed, "timeoutMs",
                     (json_int_t)(wanted->timeout_ns / CLOCK_NS_PER_MS), "killAfterMs",
                     (json_int_t)(wanted->kill_after_ns / CLOCK_NS_PER_MS), "maxOutputBytes",
                     (json_int_t)wanted->max_output, "trace", topics_to_json(wanted->topics),
                     "output", wanted->is_json ? "none" : "whole", "report", wanted->reports_later);
    json_object_update(params, more);
    set_limits(params, &wanted->limits);
    return json_incref(params);
}

/* --- the command --- */

struct run {
    const struct client *client;
    const struct client_run *options;
    struct connection *connection;
    struct follow *follow;
    struct stdin_sender *sender;
    struct questions *questions;
    bool was_interrupted;
    bool is_lent;       /* the terminal, to a question */
    json_t *answer;     /* of exec/run; NULL: none yet */
    struct err failure; /* that it failed with; code 0: it did not */
};

static void run_done(struct run *run)
{
    questions_free(run->questions);
    stdin_sender_free(run->sender);
    follow_free(run->follow);
    connection_free(run->connection);
    json_decref(run->answer);
}

static void run_on_signal(void *data, int signal)
{
    struct run *run = data;

    if (signal != SIGINT) {
        connection_send_about(run->connection, PROCESS_ID, "process/terminate",
                              json_pack("{s:i}", "graceMs", GRACE_MS));
    } else if (run->was_interrupted) {
        connection_send_about(run->connection, PROCESS_ID, "process/terminate", json_object());
    } else {
        run->was_interrupted = true;
        connection_send_about(run->connection, PROCESS_ID, "process/signal",
                              json_pack("{s:s}", "signal", "interrupt"));
    }
}

static bool has_terminal(const struct run *run)
{
    return run->options->flags & CLIENT_RUN_TTY && isatty(STDIN_FILENO);
}

static void run_on_lend(void *data, bool is_lent)
{
    struct run *run = data;

    run->is_lent = is_lent;
    if (run->sender)
        stdin_sender_lend(run->sender, is_lent);
    follow_hold(run->follow, is_lent);
}

static struct start_context context_of(const struct run *run)
{
    return (struct start_context){
        .id = PROCESS_ID,
        .dir = connection_dir(run->connection),
        .term = getenv("TERM"),
        .knows_profiles = connection_knows_profiles(run->connection),
        .size = has_terminal(run) ? terminal_size(STDIN_FILENO) : (struct pty_size){0},
    };
}

static int run_start(struct run *run, struct err *err)
{
    const struct start_context context = context_of(run);
    json_t *params = start_params(run->options, &context, err);
    AUTO_JSON json_t *result = NULL;

    if (!params)
        return -1;
    result = connection_call(run->connection, "process/start", params, err);
    if (!result && run->options->cwd)
        return err_wrap(err, "starting %s in %s", run->options->argv[0], run->options->cwd);
    return result ? 0 : err_wrap(err, "starting %s", run->options->argv[0]);
}

/* Of a command that did its work nothing is said. */
static void say_denials(const struct run *run)
{
    const json_t *end = follow_end(run->follow);
    const json_t *denials = json_object_get(end, "denials");
    size_t i;
    json_t *denial;

    if (json_integer_value(json_object_get(end, "exitCode")) == 0 ||
        run->options->flags & CLIENT_RUN_QUIET)
        return;
    json_array_foreach(denials, i, denial)
    {
        const char *operation = json_string_value(json_object_get(denial, "operation"));
        const char *path = json_string_value(json_object_get(denial, "path"));
        const char *by = connection_text(denial, "decided_by");

        if (operation && !str_eq(connection_text(denial, "source"), "host") &&
            !json_is_true(json_object_get(denial, "aside")))
            run->client->console->say("refused by the sandbox: %s %s%s%s%s. %s", operation,
                                      path ? path : connection_text(denial, "host"),
                                      *by ? " (" : "", by, *by ? ")" : "",
                                      connection_text(denial, "remedy"));
    }
}

/* --- by the executor at the server --- */

static void exec_on_answer(void *data, const struct rpc_message *answer)
{
    struct run *run = data;

    if (answer && answer->kind == RPC_RESULT)
        run->answer = json_incref((json_t *)answer->result);
    else if (answer)
        connection_answer_err(answer, &run->failure);
    if (answer)
        connection_stop(run->connection);
}

static int exec_start(struct run *run, struct err *err)
{
    const struct start_context context = context_of(run);
    struct connection_request request = {
        .method = "exec/run", .on_answer = exec_on_answer, .data = run};

    request.params = exec_params(run->options, &context, err);
    if (!request.params)
        return -1;
    connection_send(run->connection, &request);
    return 0;
}

static void exec_on_step(void *data, const json_t *event)
{
    struct run *run = data;

    if (str_eq(connection_text(event, "event"), "retried"))
        run->client->console->say("once more, with %s", connection_text(event, "with"));
}

static void say_lines(const struct run *run, const json_t *object, const char *key)
{
    const json_t *lines = json_object_get(object, key);
    const json_t *line;
    size_t i;

    json_array_foreach(lines, i, line)
    {
        AUTO_FREE char *plain = utf8_plain(json_is_string(line) ? json_string_value(line) : "");

        run->client->console->say("%s", plain);
    }
}

static int write_trace(const struct client_execution *execution, const json_t *document,
                       struct err *err)
{
    const json_t *events = json_object_get(document, "events");
    FILE *file =
        fopen(execution->trace_to, "we"); /* allow blocking fopen: as behind > in a shell */
    const json_t *event;
    bool has_failed;
    size_t i;

    if (!file)
        return err_sys(err, "opening %s", execution->trace_to);
    json_array_foreach(events, i, event)
    {
        json_dumpf(event, file, JSON_COMPACT);
        fputc('\n', file);
    }
    has_failed = ferror(file);
    return fclose(file) || has_failed ? err_sys(err, "writing %s", execution->trace_to) : 0;
}

/* As `cordon run` says it. */
static void exec_say(const struct run *run, const json_t *document)
{
    const struct client_execution *execution = run->options->execution;
    const json_t *notes = json_object_get(run->answer, "notes");
    bool is_quiet = run->options->flags & CLIENT_RUN_QUIET;

    if (!is_quiet)
        say_lines(run, document, "warnings");
    if (execution->is_json)
        return;
    if (str_eq(connection_text(document, "end"), "failed-to-start"))
        run->client->console->say("%s",
                                  connection_text(json_object_get(document, "failure"), "message"));
    if (!is_quiet)
        say_lines(run, notes, "refused");
    if (!execution->trace_to)
        say_lines(run, notes, "trace");
    say_lines(run, notes, "report");
}

/* The answer is there, or nobody reads what comes. */
static int exec_end(struct run *run, int *ret_status, struct err *err)
{
    const struct client_execution *execution = run->options->execution;
    const json_t *document = json_object_get(run->answer, "document");
    const char *outcome = connection_text(run->answer, "outcome");

    *ret_status = STATUS_NO_READER;
    if (run->failure.code) {
        *err = run->failure;
        return -1;
    }
    if (!run->answer)
        return 0;
    if (str_eq(outcome, "failed"))
        return err_set(err, ERR_SYSTEM, "%s", connection_text(run->answer, "reason"));
    exec_say(run, document);
    if (execution->is_json && run->client->console->print_json(document))
        return err_set(err, ERR_SYSTEM, "the result could not be printed");
    if (!str_eq(outcome, "ran"))
        run->client->console->say("not run: %s", connection_text(run->answer, "reason"));
    *ret_status = (int)json_integer_value(json_object_get(run->answer, "exitCode"));
    return execution->trace_to ? write_trace(execution, document, err) : 0;
}

/* Signals end this program again while the rest is written: its reader may take its time. */
static int run_end(struct run *run, int *ret_status, struct err *err)
{
    stdin_sender_drop_signals(run->sender);
    if (follow_finish(run->follow, err))
        return -1;
    questions_free(TAKE_PTR(run->questions));
    stdin_sender_free(TAKE_PTR(run->sender));
    if (run->options->execution)
        return exec_end(run, ret_status, err);
    say_denials(run);
    *ret_status = follow_exit_code(run->follow, STATUS_NO_READER);
    return 0;
}

static int run_take_questions(struct run *run, struct err *err)
{
    const struct questions_options options = {
        .connection = run->connection,
        .on_lend = run_on_lend,
        .data = run,
        .hook = run->options->hook,
        .hook_env = run->options->hook_env,
        .timeout_ns = run->options->approval_timeout_ns,
    };

    run->questions = questions_new(&options, err);
    return run->questions ? 0 : -1;
}

static int run_attached(struct run *run, int *ret_status, struct err *err)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, 0};
    const struct follow_options follow = {
        .connection = run->connection,
        .console = run->client->console,
        .id = PROCESS_ID,
        .order = FOLLOW_BY_NUMBER,
        .until = UINT64_MAX,
        .on_step = run->options->flags & CLIENT_RUN_QUIET ? NULL : exec_on_step,
        .data = run,
    };
    const struct stdin_sender_options sender = {
        .connection = run->connection,
        .console = run->client->console,
        .id = PROCESS_ID,
        .flags = STDIN_SENDER_CLOSES | (has_terminal(run) ? STDIN_SENDER_RAW : 0) |
                 (run->options->input == CLIENT_STDIN_NULL ? STDIN_SENDER_NO_INPUT : 0),
        .signals = signals,
        .on_signal = run_on_signal,
        .data = run,
    };
    struct err lost;
    int status;

    run->follow = follow_new(&follow, err);
    if (!run->follow)
        return -1;
    if (run_take_questions(run, err) ||
        (run->options->execution ? exec_start : run_start)(run, err))
        return -1;
    run->sender = stdin_sender_new(&sender, err);
    if (!run->sender)
        return -1;
    if (run->is_lent)
        stdin_sender_lend(run->sender, true);
    if (connection_run(run->connection, &lost)) {
        run_end(run, &status, err);
        *err = lost;
        return err_wrap(err, "the command is lost");
    }
    if (!follow_is_closed(run->follow) && !run->answer && !run->failure.code)
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

/* What kept the command from running at the server is said, and is an exit status. */
static int run_fail(const struct run *run, int *ret_status, struct err *err)
{
    const struct client_console *console = run->client->console;
    const struct client_execution *execution = run->options->execution;
    AUTO_JSON json_t *json =
        execution && execution->is_json ? execution_failure_document(err) : NULL;

    if (json)
        console->print_json(json);
    if (err->code != ERR_FORBIDDEN)
        return -1;
    console->say("%s", err->msg);
    *ret_status = err->sys == ENOENT ? STATUS_NOT_FOUND : STATUS_FORBIDDEN;
    return 0;
}

int client_run(const struct client *client, const struct client_run *options, int *ret_status,
               struct err *err)
{
    AUTO(run_done) struct run run = {.client = client, .options = options};
    bool is_detached = options->flags & CLIENT_RUN_DETACHED;

    run.connection = connection_open(
        &client->server, is_detached ? CONNECTION_LEAVES_SESSION : CONNECTION_ENDS_SESSION, NULL,
        err);
    if (!run.connection)
        return -1;
    if ((is_detached ? run_detached : run_attached)(&run, ret_status, err) == 0)
        return 0;
    return run_fail(&run, ret_status, err);
}
