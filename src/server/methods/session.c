/* The methods session/...: what a model may ask. session/exec makes the parameters of exec_command
 * into what job/model_calls.h takes; what the rules forbid is refused before anything of it is run.
 * session/write, wait, terminate, screen and list: a session belongs to the client's session that
 * started it; to others it does not exist. session/events: what any process does, those of models among
 * them. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "base/strv.h"
#include "job/job_environment.h"
#include "output/output.h"
#include "screen/screen.h"
#include "server/call.h"
#include "server/client.h"
#include "server/client_session.h"
#include "server/layer/layer_table.h"
#include "server/method_table.h"
#include "server/methods.gen.h"
#include "server/model/model_process.h"
#include "server/model/model_request.h"
#include "server/model/session_command.h"
#include "server/model/write_queue.h"
#include "server/process/observer.h"
#include "server/process/process_held.h"
#include "server/process/process_wait.h"
#include "server/process/rpc_process.h"
#include "server/rpc_path.h"
#include "server/sandbox_request.h"
#include "server/server.h"
#include "server/start_env.h"
#include "workspace/finder.h"
#include "workspace/workspace.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TOOL "exec_command" /* as its model knows it */

static const struct screen_limits screen_limits = {.lines_max = 1000, .bytes_max = 1 << 18};

/* --- pace --- */

static bool read_number(const json_t *value, uint64_t *ret)
{
    if (!json_is_integer(value))
        return false;
    *ret = (uint64_t)json_integer_value(value);
    return true;
}

/* Exactly one of {"text"}, {"quietMs"}, {"bytes"}. */
static int read_until(const json_t *until, struct model_pace *ret, struct err *err)
{
    const json_t *text = json_object_get(until, "text");

    if (!until || json_is_null(until))
        return 0;
    if (json_is_string(text) && json_string_length(text)) {
        ret->until = MODEL_UNTIL_TEXT;
        ret->text = json_string_value(text);
        ret->text_len = json_string_length(text);
    } else if (read_number(json_object_get(until, "quietMs"), &ret->number)) {
        ret->until = MODEL_UNTIL_QUIET;
    } else if (read_number(json_object_get(until, "bytes"), &ret->number)) {
        ret->until = MODEL_UNTIL_BYTES;
    } else {
        return err_set(err, ERR_INVALID,
                       "$.until: should be {\"text\": STRING}, {\"quietMs\": N} or {\"bytes\": N}");
    }
    return 0;
}

/* The two numbers are borrowed; UINT64_MAX: not given. */
static int read_pace(const uint64_t *yield_ms, const uint64_t *max_tokens, const json_t *until,
                     struct model_pace *ret, struct err *err)
{
    *ret = (struct model_pace){
        .yield_ms = *yield_ms == UINT64_MAX ? NULL : yield_ms,
        .max_tokens = *max_tokens == UINT64_MAX ? NULL : max_tokens,
    };
    return read_until(until, ret, err);
}

/* --- environment --- */

/* `own`: what the call itself sets; NULL: without that. */
static void make_env(const struct session_exec_params *params, const json_t *own,
                     const struct server *server, struct strv *ret)
{
    AUTO(strv_done) struct strv base = {0};
    AUTO(strv_done) struct strv chosen = {0};
    struct job_env_request request = {.thread_id = params->thread_id};
    const char *name;
    json_t *value;

    start_env_for_call(params->env_policy, own, server->config.file, &base);
    json_object_foreach((json_t *)own, name, value) strv_push(&chosen, name);
    request.base = strv_view(&base);
    request.chosen = (const char *const *)strv_view(&chosen);
    job_env_build(&request, ret);
}

/* --- the call --- */

/* What one exec borrows while it is started. */
struct exec_parts {
    char *cwd;
    struct strv env;
    struct strv base; /* of env, what is not the call's own */
    struct model_pace pace;
    struct resource_limits limits;
    struct workspace *workspace;
};

static void exec_parts_done(struct exec_parts *parts)
{
    free(parts->cwd);
    strv_done(&parts->env);
    strv_done(&parts->base);
}

/* -1: `*ret_code` and `err` say why not. */
static int exec_parts_read(struct call *call, const struct session_exec_params *params,
                           struct exec_parts *parts, enum rpc_code *ret_code, struct err *err)
{
    struct server *server = call->client->server;
    struct sandbox_call request = {.sandbox = params->sandbox,
                                   .otherwise = server_own_default(server),
                                   .tmpdir = getenv("TMPDIR"),
                                   .topics = sandbox_topics(params->trace),
                                   .audit_topics = server_audit_topics(server)};
    struct stat st;

    parts->cwd = rpc_path_parse(params->cwd, ret_code, err);
    if (!parts->cwd)
        return -1;
    *ret_code = RPC_INTERNAL;
    if (stat(parts->cwd, &st))
        return err_sys(err, "the working directory %s", parts->cwd);
    *ret_code = RPC_INVALID_PARAMS;
    if (read_pace(&params->yield_time_ms, &params->max_output_tokens, params->until, &parts->pace,
                  err) ||
        call_limits(CALL_LIMITS(params), &parts->limits, err))
        return -1;
    make_env(params, params->env, server, &parts->env);
    make_env(params, NULL, server, &parts->base);
    request.cwd = parts->cwd;
    *ret_code = RPC_INVALID_REQUEST;
    if (layer_choose(server, params->layer, &request, err))
        return -1;
    parts->workspace = workspace_for_call(server->workspaces, &request, ret_code, err);
    return parts->workspace ? 0 : -1;
}

static void exec_start(struct call *call, const struct session_exec_params *params,
                       const struct exec_parts *parts, struct model_exec *exec)
{
    struct client_session *session = call->client->session;
    AUTO(session_replacement_done) struct session_replacement replacement = {.cwd = NULL};
    struct model_request *request = model_request_new(call, TOOL);
    struct err err = {0};
    struct model_calls *calls = server_model_calls(session->server, &err);
    struct model_call *waiting = NULL;

    if (calls && session_replacement_init(&replacement, call, call_params(call), parts->workspace,
                                          strv_view(&parts->base), exec, &err) == 0)
        waiting = model_calls_exec(calls, exec, model_request_on_done, request, &err);
    request->is_traced = json_array_size(params->trace);
    request->progress_ns = params->progress_ms * CLOCK_NS_PER_MS;
    if (waiting)
        model_process_add(session, exec, parts->workspace,
                          model_calls_find(calls, model_call_id(waiting), &err));
    model_request_began(request, waiting, exec->cmd, &err);
}

static void exec_begin(struct call *call, const struct session_exec_params *params,
                       const struct exec_parts *parts)
{
    AUTO_FREE char *shell =
        params->shell ? alloc_str(params->shell) : host_shell(strv_view(&parts->env));
    struct model_exec exec = {
        .cmd = params->cmd,
        .shell = shell,
        .is_login = params->login,
        .workdir = parts->cwd,
        .env = strv_view(&parts->env),
        .sandbox = parts->workspace->sandbox,
        .access = parts->workspace->access,
        .topics = parts->workspace->topics,
        .audit_topics = parts->workspace->audit_topics,
        .asks = process_is_held(call->client->session, parts->workspace),
        .is_judged = workspace_judges_execs(parts->workspace),
        .stdio = params->tty ? PROCESS_TTY : PROCESS_PIPES,
        .input = params->pipe_stdin || params->stdin ? PROCESS_STDIN_PIPE : PROCESS_STDIN_NULL,
        .given = params->stdin,
        .given_len = params->stdin_len,
        .size = {.rows = (unsigned short)params->rows, .columns = (unsigned short)params->columns},
        .screen = params->screen ? &screen_limits : NULL,
        .owner = call->client->session->number,
        .pace = parts->pace,
        .limits = parts->limits,
    };
    AUTO_FREE char *forbidden = session_rules_refusal(call, &exec, parts->workspace);

    if (forbidden)
        model_request_refuse(call, TOOL, exec.cmd, forbidden);
    else
        exec_start(call, params, parts, &exec);
}

void method_session_exec(struct call *call, const struct session_exec_params *params)
{
    AUTO(exec_parts_done) struct exec_parts parts = {0};
    enum rpc_code code = RPC_INTERNAL;
    struct err err;

    if (server_refuses(call->client->server, call) || !layer_admit(call, params->layer))
        return;
    if (exec_parts_read(call, params, &parts, &code, &err))
        call_fail_with(call, code, &err);
    else
        exec_begin(call, params, &parts);
}

/* --- a session that runs --- */

/* The number of a session as a client gave it; 0: no session has it. */
static int number_of(int64_t given)
{
    return given > 0 && given <= INT_MAX ? (int)given : 0;
}

/* NULL with an error in the words that a model gets. */
static struct job *session_of(const struct call *call, int64_t given, struct err *err)
{
    struct model_calls *calls = server_model_calls(call->client->server, err);
    int number = number_of(given);
    struct job *job = calls && number ? model_calls_find(calls, number, err) : NULL;
    struct job_info info;

    if (!calls || (!job && number))
        return NULL;
    if (job)
        job_info(job, &info);
    if (job && info.owner == call->client->session->number)
        return job;
    err_set(err, ERR_NOT_FOUND, "there is no session %" PRId64, given);
    return NULL;
}

/* A person who has taken the right to write (process/attach) is not interfered with. */
static int check_write_lock(const struct call *call, const struct model_write *write,
                            struct err *err)
{
    const struct client *client = call->client;
    const struct rpc_process *process = model_process_find(client->session, write->session_id);

    if ((!write->len && !write->closes) || !process || client_may_write(client, process))
        return 0;
    return err_set(err, ERR_FORBIDDEN,
                   "another client writes to session %d now (process/attach), so nothing was sent; "
                   "wait for what it does, and try again",
                   write->session_id);
}

static void write_begin(struct call *call, struct queued_write *queued)
{
    struct model_request *request = model_request_new(call, "write_stdin");
    const struct session_write_params *params = call->params;
    struct model_write write = {
        .session_id = number_of(params->session_id),
        .chars = params->chars,
        .len = params->chars_len,
        .name = params->write_id,
        .closes = params->close,
    };
    struct model_call *waiting = NULL;
    struct err err;

    request->queued = queued;
    request->progress_ns = params->progress_ms * CLOCK_NS_PER_MS;
    request->job = session_of(call, params->session_id, &err);
    if (request->job &&
        read_pace(&params->yield_time_ms, &params->max_output_tokens, params->until, &write.pace,
                  &err) == 0 &&
        check_write_lock(call, &write, &err) == 0)
        waiting = model_calls_write(request->server->model_calls, &write, model_request_on_done,
                                    request, &err);
    model_request_began(request, waiting, NULL, &err);
}

/* Looking on and interrupting are possible at any time; everything else is queued. */
static bool needs_queue(const struct session_write_params *params)
{
    return params->close || params->chars_len > 1 ||
           (params->chars_len == 1 && *params->chars != '\003');
}

void method_session_write(struct call *call, const struct session_write_params *params)
{
    int number = number_of(params->session_id);
    struct err ignored; /* said when it begins */

    if (needs_queue(params) && session_of(call, params->session_id, &ignored))
        write_queue_add(call, number, write_begin);
    else
        write_begin(call, NULL);
}

void method_session_wait(struct call *call, const struct session_wait_params *params)
{
    struct model_request *request = model_request_new(call, "wait_for");
    int number = number_of(params->session_id);
    struct model_call *waiting = NULL;
    struct model_pace pace;
    struct err err;

    request->progress_ns = params->progress_ms * CLOCK_NS_PER_MS;
    if (session_of(call, params->session_id, &err) &&
        read_pace(&params->yield_time_ms, &params->max_output_tokens, params->until, &pace, &err) ==
            0)
        waiting = model_calls_wait(request->server->model_calls, number, &pace,
                                   model_request_on_done, request, &err);
    model_request_began(request, waiting, NULL, &err);
}

void method_session_terminate(struct call *call, const struct session_terminate_params *params)
{
    struct model_request *request = model_request_new(call, "terminate_session");
    int number = number_of(params->session_id);
    struct model_call *waiting = NULL;
    struct err err;

    if (session_of(call, params->session_id, &err))
        waiting = model_calls_terminate(request->server->model_calls, number,
                                        params->grace_ms * CLOCK_NS_PER_MS, model_request_on_done,
                                        request, &err);
    model_request_began(request, waiting, NULL, &err);
}

/* --- session/cancel --- */

/* NULL when no request of this family with this id waits. */
static struct call *find_waiting(const struct client *client, const json_t *id)
{
    struct call *call;

    list_for_each(call, &client->calls, in_client)
        if (call->method && call->on_gone && str_starts(call->method->name, "session/") &&
            json_equal((json_t *)call->message.id, (json_t *)id))
            return call;
    return NULL;
}

void method_session_cancel(struct call *call, const struct session_cancel_params *params)
{
    struct call *waiting = find_waiting(call->client, params->request_id);
    int session = waiting ? model_request_session(waiting) : 0;

    if (waiting)
        call_cancel(waiting, "the request was cancelled; its command goes on, and its output waits "
                             "for the next call");
    call_reply(call, json_pack("{s:b, s:o}", "cancelled", waiting != NULL, "sessionId",
                               session ? json_integer(session) : json_null()));
}

/* --- session/screen --- */

static json_t *row_to_json(const struct screen *screen, unsigned row)
{
    AUTO(buf_done) struct buf text = {0};

    buf_init(&text, SIZE_MAX / 2);
    screen_row(screen, row, &text);
    return json_lossy(text.data ? text.data : "");
}

static json_t *screen_to_json(const struct screen *screen, size_t scrollback)
{
    json_t *lines = json_array();
    struct screen_info info;

    screen_info(screen, &info);
    if (scrollback > info.lines)
        scrollback = info.lines;
    for (size_t i = info.lines - scrollback; i < info.lines; i++)
        json_array_append_new(lines, json_lossy(screen_line(screen, i)));
    for (unsigned row = 0; row < info.rows; row++)
        json_array_append_new(lines, row_to_json(screen, row));
    return json_pack("{s:o, s:I, s:i, s:i, s:i, s:i, s:b, s:b, s:o}", "lines", lines, "scrollback",
                     (json_int_t)scrollback, "rows", (int)info.rows, "columns", (int)info.columns,
                     "cursorRow", (int)info.cursor_row, "cursorColumn", (int)info.cursor_column,
                     "cursorVisible", info.is_cursor_visible, "alternate", info.is_alternate,
                     "title", json_lossy(info.title));
}

void method_session_screen(struct call *call, const struct session_screen_params *params)
{
    int number = number_of(params->session_id);
    struct err err;
    const struct job *job = session_of(call, params->session_id, &err);
    const struct screen *screen = job ? job_screen(job) : NULL;

    if (!job)
        call_fail_err(call, &err);
    else if (!screen)
        call_fail(call, RPC_INVALID_REQUEST,
                  "session %d was started without \"tty\" and \"screen\"", number);
    else
        call_reply(call, screen_to_json(screen, (size_t)params->scrollback));
}

/* --- session/list --- */

static json_t *item_to_json(int id, const struct job *job)
{
    pid_t pid = job_pid(job);
    struct job_info info;

    job_info(job, &info);
    return json_pack("{s:i, s:o, s:o, s:b, s:o, s:I}", "sessionId", id, "command",
                     json_lossy(info.command), "cwd", rpc_path_to_json(info.cwd), "tty",
                     info.has_tty, "pid", pid ? json_integer(pid) : json_null(), "outputBytes",
                     (json_int_t)output_total(job_output(job)));
}

void method_session_list(struct call *call)
{
    struct client_session *owner = call->client->session;
    struct model_calls *calls = owner->server->model_calls;
    size_t len = 0;
    AUTO_FREE int *ids = calls ? model_calls_list(calls, owner->number, &len) : NULL;
    json_t *list = json_array();
    struct err ignored;

    for (size_t i = 0; i < len; i++) {
        const struct job *job = model_calls_find(calls, ids[i], &ignored);

        if (job)
            json_array_append_new(list, item_to_json(ids[i], job));
    }
    call_reply(call, json_pack("{s:o}", "sessions", list));
}

/* --- session/events --- */

void method_session_events(struct call *call, const struct session_events_params *params)
{
    struct process_wait wait = {
        .kind = WAIT_EVENTS,
        .call = call,
        .after_seq = params->after_seq,
        .max_events = (size_t)params->max,
    };
    uint64_t wait_ns = params->wait_ms * CLOCK_NS_PER_MS;

    wait.process = call_process(call, params->process_id); /* a failed call takes `params` along */
    if (!wait.process)
        return;
    if (job_timeline(wait.process->job))
        process_wait_start(&wait, wait_ns);
    else
        call_fail(
            call, RPC_INVALID_REQUEST,
            "process %s has no timeline: it was started without `trace`, without a sandbox, or "
            "on a host without the guard",
            wait.process->id);
}
