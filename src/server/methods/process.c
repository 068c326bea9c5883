/* The methods process/... What they do to a process that is not known or has ended is as in the
 * original: for some an error, for others an answer.
 *
 * process/start is read in steps, each of which can refuse: the words, the workspace, the
 * environment. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "base/strv.h"
#include "output/output.h"
#include "rpc/rpc.h"
#include "server/call.h"
#include "server/client.h"
#include "server/client_session.h"
#include "server/layer/layer_table.h"
#include "server/methods.gen.h"
#include "server/model/model_process.h"
#include "server/model/session_command.h"
#include "server/process/observer.h"
#include "server/process/process_held.h"
#include "server/process/process_network.h"
#include "server/process/process_wait.h"
#include "server/process/rpc_process.h"
#include "server/rpc_path.h"
#include "server/run/exec_run.h"
#include "server/sandbox_request.h"
#include "server/server.h"
#include "server/start_env.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- process/start --- */

/* Everything that a start is made of. */
struct start {
    const struct process_start_params *params;
    char *cwd;
    struct strv argv;
    struct strv env;
    const char *program; /* NULL: argv[0] */
    struct resource_limits limits;
    struct process_network network;
};

static void start_done(struct start *start)
{
    free(start->cwd);
    strv_done(&start->argv);
    strv_done(&start->env);
    process_network_done(&start->network);
}

static bool is_uuid(const char *text)
{
    for (int i = 0; i < 36; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (is_dash ? text[i] != '-' : !strchr("0123456789abcdefABCDEF", text[i]) || !text[i])
            return false;
    }
    return !text[36];
}

static int check_metadata(const json_t *metadata, struct err *err)
{
    const char *thread = json_string_value(json_object_get(metadata, "threadId"));

    if (thread && !is_uuid(thread))
        return err_set(err, ERR_INVALID, "metadata.threadId \"%.60s\" is not a UUID", thread);
    return 0;
}

static bool call_refuse_start(struct call *call, const struct process_start_params *params)
{
    struct client_session *session = call->client->session;
    const char *id = params->process_id;
    struct rpc_process *old = process_table_find(&session->processes, id);
    struct err err;

    if (old && old->state == RPC_PROCESS_FAILED)
        rpc_process_free(TAKE_PTR(old));
    if (old)
        call_fail(call, RPC_INVALID_REQUEST, "process %s already exists", id);
    else if (model_process_is_id(id))
        call_fail(call, RPC_INVALID_REQUEST,
                  "process ids that begin with \"" MODEL_PROCESS_PREFIX
                  "\" are those of session/exec; choose another one");
    else if (check_metadata(params->metadata, &err))
        call_fail_err(call, &err);
    else
        return server_refuses(session->server, call);
    return true;
}

/* A missing directory is the error of the original here, and not one that comes from the inside. */
static bool dir_is_missing(const char *cwd)
{
    struct stat st;

    return stat(cwd, &st) && errno == ENOENT;
}

/* The program is found by argv[0] when arg0 says something else for the command to see. */
static void start_read_argv(struct start *start)
{
    const char *arg0 = start->params->arg0;
    const json_t *argv = start->params->argv;

    call_words(argv, &start->argv);
    if (!arg0)
        return;
    start->program = json_string_value(json_array_get(argv, 0));
    free(start->argv.items[0]);
    start->argv.items[0] = alloc_str(arg0);
}

static int start_read(struct start *start, enum rpc_code *ret_code, struct err *err)
{
    const struct process_start_params *params = start->params;

    start->cwd = rpc_path_parse(params->cwd, ret_code, err);
    if (!start->cwd)
        return -1;
    *ret_code = RPC_INVALID_PARAMS;
    if (call_limits(CALL_LIMITS(params), &start->limits, err) ||
        process_network_read(params, &start->network, err))
        return -1;
    start_read_argv(start);
    start_env_build(params->env_policy, params->env, &start->env);
    if (start->network.has_proxy)
        start_env_add_proxy(start->network.has_socks, start->network.policy.allow_local_binding,
                            &start->env);
    return 0;
}

static struct process_options start_options(const struct start *start,
                                            struct client_session *session,
                                            struct workspace *workspace)
{
    const struct process_start_params *params = start->params;
    bool has_tty = params->tty;
    bool is_bare = strcmp(workspace->type, "none") == 0;

    return (struct process_options){
        .loop = session->server->loop,
        .sandbox = workspace->sandbox,
        .argv = strv_view(&start->argv),
        .program = start->program,
        .env = strv_view(&start->env),
        .cwd = start->cwd,
        .stdio = has_tty ? PROCESS_TTY : PROCESS_PIPES,
        .input = params->pipe_stdin ? PROCESS_STDIN_PIPE : PROCESS_STDIN_NULL,
        .asks = start->network.review_ns > 0 || process_is_held(session, workspace),
        .lingers = is_bare && !has_tty,
        .size = {.rows = (unsigned short)params->rows, .columns = (unsigned short)params->columns},
    };
}

static void start_process(struct call *call, const struct start *start, struct workspace *workspace)
{
    struct client_session *session = call->client->session;
    const struct process_start_params *params = start->params;
    const struct process_options process = start_options(start, session, workspace);
    uint64_t quota = session->server->limits.spool_quota;
    const struct rpc_process_options options = {
        .owner = session,
        .id = params->process_id,
        .process = &process,
        .limits = &start->limits,
        .workspace = workspace,
        .metadata = (json_t *)params->metadata,
        .network = &start->network,
        .delivery = params->delivery && str_eq(params->delivery, "pull") ? RPC_PULL : RPC_PUSH,
        .spool_bytes = params->spool_bytes < quota ? params->spool_bytes : quota,
        .start = call,
    };
    struct err err;

    if (rpc_process_new(&options, &err))
        return;
    call_fail_with(call, RPC_INTERNAL, &err);
}

void method_process_start(struct call *call, const struct process_start_params *params)
{
    AUTO(start_done) struct start start = {.params = params};
    struct sandbox_call request = {.sandbox = params->sandbox,
                                   .otherwise = call->client->server->default_sandbox,
                                   .tmpdir = getenv("TMPDIR"),
                                   .topics = sandbox_topics(params->trace),
                                   .audit_topics = server_audit_topics(call->client->server)};
    AUTO_FREE char *forbidden = NULL;
    struct workspace *workspace;
    enum rpc_code code;
    struct err err;

    if (call_refuse_start(call, params) || !layer_admit(call, params->layer))
        return;
    if (start_read(&start, &code, &err)) {
        call_fail_with(call, code, &err);
        return;
    }
    if (dir_is_missing(start.cwd)) {
        call_fail(call, RPC_INTERNAL, "%s (os error %d)", strerror(ENOENT), ENOENT);
        return;
    }
    request.cwd = start.cwd;
    if (start.network.is_given)
        request.hosts = &start.network.policy;
    if (layer_choose(call->client->server, params->layer, &request, &err)) {
        call_fail_with(call, RPC_INVALID_REQUEST, &err);
        return;
    }
    workspace = workspace_for_call(call->client->server->workspaces, &request, &code, &err);
    if (workspace && (sandbox_is_by_name(request.sandbox) || (request.layer && !request.sandbox)))
        forbidden = argv_rules_refusal(call, strv_view(&start.argv), start.cwd,
                                       strv_view(&start.env), workspace);
    if (forbidden)
        call_fail_data(call, RPC_INVALID_REQUEST, forbidden,
                       json_pack("{s:s}", "reason", "forbidden"));
    else if (workspace)
        start_process(call, &start, workspace);
    else
        call_fail_with(call, code, &err);
}

/* --- process/write and closeStdin --- */

/* An exec/run of this session that goes on; NULL: there is none, or a process has the id. */
static struct exec_run *call_run(const struct call *call, const char *id)
{
    return client_process(call->client, id) ? NULL : exec_run_find(call->client->session, id);
}

static void reply_status(struct call *call, const char *status)
{
    call_reply(call, json_pack("{s:s}", "status", status));
}

static void fail_ended(struct call *call)
{
    call_fail(call, RPC_INTERNAL, "failed to write to process stdin");
}

static void fail_no_room(struct call *call, const char *id, const struct job *job)
{
    AUTO_FREE char *text = alloc_strf("%zu bytes of input wait already for process %s to read them",
                                      JOB_INPUT_MAX, id);

    call_fail_data(call, RPC_INVALID_REQUEST, text, limit_data_of_input(job));
}

/* Another attempt of a run may take what comes when this one has ended. */
enum at_end { AT_END_FAIL, AT_END_WAIT };

static void write_bytes(struct call *call, struct job *job, enum at_end at_end,
                        const struct process_write_params *params, const char *bytes, size_t len)
{
    enum job_written written;
    struct err err;

    if (job_write(job, bytes, len, params->write_id, &written, &err)) {
        call_fail_err(call, &err);
        return;
    }
    switch (written) {
    case JOB_WRITTEN:
    case JOB_WRITTEN_BEFORE:
    case JOB_INTERRUPTED:
        reply_status(call, "accepted");
        break;
    case JOB_NO_INPUT:
        reply_status(call, "stdinClosed");
        break;
    case JOB_NO_ROOM:
        fail_no_room(call, params->process_id, job);
        break;
    case JOB_IS_OVER:
        if (at_end == AT_END_WAIT)
            reply_status(call, "starting");
        else
            fail_ended(call);
        break;
    }
}

/* Checked before the process is looked for, as in the original. NULL: answered. */
static char *decode(struct call *call, const struct process_write_params *params, size_t *ret_len)
{
    const char *text = params->chunk;
    size_t text_len = params->chunk_len;
    AUTO_FREE char *bytes = alloc_zero(base64_decoded_len(text, text_len) + 1, 1);
    struct err err;

    if (base64_decode(text, text_len, bytes, &err)) {
        size_t at = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                 "0123456789+/=");

        if (at < text_len)
            call_fail(call, RPC_INVALID_PARAMS, "Invalid symbol %d, offset %zu.",
                      (unsigned char)text[at], at);
        else
            call_fail(call, RPC_INVALID_PARAMS, "Invalid padding");
        return NULL;
    }
    *ret_len = base64_decoded_len(text, text_len);
    return TAKE_PTR(bytes);
}

void method_process_write(struct call *call, const struct process_write_params *params)
{
    size_t len = 0;
    AUTO_FREE char *bytes = decode(call, params, &len);
    struct rpc_process *process;
    struct exec_run *run;

    if (!bytes)
        return;
    process = client_process(call->client, params->process_id);
    if (process && process_wait_for_start(process, call))
        return;
    run = call_run(call, params->process_id);
    if (run && (run->job.input == JOB_RUN_INPUT_NULL || run->is_input_closed))
        reply_status(call, "stdinClosed");
    else if (run && exec_run_job(run))
        write_bytes(call, exec_run_job(run), AT_END_WAIT, params, bytes, len);
    else if (run)
        reply_status(call, "starting");
    else if (!process)
        reply_status(call, "unknownProcess");
    else if (!process->takes_input)
        reply_status(call, "stdinClosed");
    else if (process->state != RPC_PROCESS_RUNNING)
        fail_ended(call);
    else if (!client_may_write(call->client, process))
        call_fail(call, RPC_INVALID_REQUEST, "another connection writes to process %s",
                  process->id);
    else
        write_bytes(call, process->job, AT_END_FAIL, params, bytes, len);
}

void method_process_close_stdin(struct call *call, const struct process_close_stdin_params *params)
{
    struct exec_run *run = call_run(call, params->process_id);
    struct rpc_process *process = run ? NULL : call_process(call, params->process_id);
    struct job_info info;

    if (run) {
        exec_run_close_input(run);
        call_reply(call, json_pack("{s:b}", "closed", run->job.input != JOB_RUN_INPUT_NULL));
        return;
    }
    if (!process || process_wait_for_start(process, call))
        return;
    if (!client_may_write(call->client, process)) {
        call_fail(call, RPC_INVALID_REQUEST, "another connection writes to process %s",
                  process->id);
        return;
    }
    job_info(process->job, &info);
    job_close_input(process->job);
    call_reply(call, json_pack("{s:b}", "closed", info.has_input));
}

/* --- signals --- */

void method_process_signal(struct call *call, const struct process_signal_params *params)
{
    struct rpc_process *process = client_process(call->client, params->process_id);
    struct exec_run *run = call_run(call, params->process_id);
    struct job *job = run ? exec_run_job(run) : NULL;
    struct err err;

    if (process && process_wait_for_start(process, call))
        return;
    if (run && !job) /* a question waits */
        exec_run_cancel(run);
    if (process)
        job = process->job;
    if (job && job_interrupt(job, &err))
        call_fail_err(call, &err);
    else
        call_reply(call, json_object());
}

void method_process_terminate(struct call *call, const struct process_terminate_params *params)
{
    struct rpc_process *process = client_process(call->client, params->process_id);
    struct exec_run *run = call_run(call, params->process_id);
    uint64_t grace_ns = params->grace_ms * CLOCK_NS_PER_MS;
    bool was_running = run;
    struct err err;

    if (run) {
        exec_run_cancel(run);
        if (exec_run_job(run) && job_terminate(exec_run_job(run), grace_ns, &err)) {
            call_fail_err(call, &err);
            return;
        }
    }
    if (process && rpc_process_terminate(process, grace_ns, &was_running, &err))
        call_fail_err(call, &err);
    else
        call_reply(call, json_pack("{s:b}", "running", was_running));
}

void method_process_resize(struct call *call, const struct process_resize_params *params)
{
    const struct pty_size size = {
        .rows = (unsigned short)params->rows,
        .columns = (unsigned short)params->columns,
    };
    struct exec_run *run = call_run(call, params->process_id);
    struct rpc_process *process = run ? NULL : call_process(call, params->process_id);
    struct job *job = run ? exec_run_job(run) : NULL;
    struct err err;

    if (run) {
        run->job.size = size; /* of the next attempt, too */
        if (run->job.stdio == PROCESS_TTY && job && job_resize(job, size, &err))
            call_fail_err(call, &err);
        else
            call_reply(call, json_object());
        return;
    }
    if (!process || process_wait_for_start(process, call))
        return;
    if (!process->has_tty)
        call_fail(call, RPC_INVALID_REQUEST, "process %s has no terminal to resize", process->id);
    else if (job_resize(process->job, size, &err))
        call_fail_err(call, &err);
    else
        call_reply(call, json_object());
}

/* --- process/publish --- */

void method_process_publish(struct call *call, const struct process_publish_params *params)
{
    struct exec_run *run = call_run(call, params->process_id);
    struct rpc_process *process = run ? NULL : call_process(call, params->process_id);
    struct job *job = run ? exec_run_job(run) : NULL;
    AUTO_FREE char *published = NULL;
    struct publication publication;
    struct err err;

    if (!run && (!process || process_wait_for_start(process, call)))
        return;
    if (publication_parse(params->publish, &publication, &err)) {
        call_fail(call, RPC_INVALID_PARAMS, "$.publish: %s", err.msg);
        return;
    }
    job = run ? job : process->job;
    if (!job) {
        call_fail(call, RPC_INVALID_REQUEST, "no command of it runs now");
        return;
    }
    if (job_publish(job, &publication, &publication, &err)) {
        call_fail(call, RPC_INVALID_REQUEST, "%s", err.msg);
        return;
    }
    published = publication_format(&publication);
    call_reply(call, json_pack("{s:s}", "published", published));
}

/* --- process/read and wait --- */

/* UINT64_MAX: without end. */
static uint64_t ns_of(uint64_t ms)
{
    return ms < UINT64_MAX / CLOCK_NS_PER_MS ? ms * CLOCK_NS_PER_MS : UINT64_MAX;
}

void method_process_read(struct call *call, const struct process_read_params *params)
{
    struct process_wait wait = {
        .kind = WAIT_READ,
        .call = call,
        .after_seq = params->after_seq,
        .offset = params->offset,
        .max_bytes = params->max_bytes,
    };
    uint64_t wait_ns = ns_of(params->wait_ms);

    wait.process = call_process(call, params->process_id); /* a failed call takes `params` along */
    if (!wait.process || process_wait_for_start(wait.process, call))
        return;
    process_wait_start(&wait, wait_ns);
}

void method_process_wait(struct call *call, const struct process_wait_params *params)
{
    struct process_wait wait = {
        .kind = params->until && str_eq(params->until, "closed") ? WAIT_CLOSED : WAIT_EXITED,
        .call = call,
    };
    uint64_t wait_ns = ns_of(params->timeout_ms);

    wait.process = call_process(call, params->process_id);
    if (wait.process)
        process_wait_start(&wait, wait_ns);
}

/* --- process/attach and detach --- */

static struct rpc_process *attach_find(struct call *call,
                                       const struct process_attach_params *params)
{
    const char *session_id = params->session_id;
    const char *id = params->process_id;
    struct client_session *session = client_session_find(call->client->server, session_id);
    struct rpc_process *process = session ? process_table_find(&session->processes, id) : NULL;

    if (!session)
        call_fail(call, RPC_INVALID_REQUEST, "unknown session id %s", session_id);
    else if (session == call->client->session && !model_process_is_id(id))
        call_fail(call, RPC_INVALID_REQUEST, "process %s is this session's own", id);
    else if (!process || process->state == RPC_PROCESS_STARTING ||
             process->state == RPC_PROCESS_FAILED)
        call_fail(call, RPC_INVALID_REQUEST, "unknown process id %s", id);
    else
        return process;
    return NULL;
}

void method_process_attach(struct call *call, const struct process_attach_params *params)
{
    struct client *client = call->client;
    struct rpc_process *process = attach_find(call, params);
    AUTO_FREE char *alias = NULL;
    struct observer *observer;
    struct output *output;
    uint64_t total;
    json_t *result;

    if (!process)
        return;
    output = job_output(process->job);
    total = output_total(output);
    alias = alloc_strf("%s/%s", process->owner->id, process->id);
    observer = observer_find(client, alias);
    if (params->write && process->writer && process->writer != observer) {
        call_fail(call, RPC_INVALID_REQUEST, "another connection writes to process %s",
                  process->id);
        return;
    }
    if (!observer) {
        observer = observer_new(client, process);
        observer->told = rpc_process_last_event(process);
    }
    output_seek(output, params->offset < total ? params->offset : total, &observer->cursor);
    observer_set_output(observer, params->output);
    if (params->write)
        process->writer = observer;
    result = json_pack("{s:s, s:b}", "alias", observer->alias, "tty", process->has_tty);
    rpc_process_state_to_json(process, result);
    json_object_set_new(result, "nextSeq", json_integer((json_int_t)rpc_process_next_seq(process)));
    json_object_set_new(result, "nextOffset", json_integer((json_int_t)total));
    call_reply(call, result);
    observer_send(observer);
}

void method_process_detach(struct call *call, const struct process_detach_params *params)
{
    struct observer *observer = observer_find(call->client, params->alias);

    if (!observer) {
        call_fail(call, RPC_INVALID_REQUEST, "nothing is attached as %s", params->alias);
        return;
    }
    observer_free(observer);
    call_reply(call, json_object());
}

/* --- process/list --- */

static json_int_t count_observers(const struct rpc_process *process)
{
    const struct observer *observer;
    json_int_t count = 0;

    list_for_each(observer, &process->observers, in_process)
        count++;
    return count;
}

static json_t *process_to_json(const struct rpc_process *process)
{
    pid_t pid = job_pid(process->job);
    json_t *item;

    item =
        json_pack("{s:s, s:s, s:o, s:o, s:b, s:o, s:s, s:I}", "processId", process->id, "sessionId",
                  process->owner->id, "argv", json_lossy_list(strv_view(&process->argv)), "cwd",
                  rpc_path_to_json(process->cwd), "tty", process->has_tty, "pid",
                  pid ? json_integer(pid) : json_null(), "sandboxType", process->sandbox_type,
                  "startedAtMs", (json_int_t)process->started_ms);
    rpc_process_state_to_json(process, item);
    json_object_set_new(item, "nextSeq", json_integer((json_int_t)rpc_process_next_seq(process)));
    json_object_set_new(item, "nextOffset",
                        json_integer((json_int_t)output_total(job_output(process->job))));
    json_object_set_new(item, "modelSession",
                        process->number ? json_integer(process->number) : json_null());
    json_object_set_new(item, "published",
                        pid ? publications_to_json(job_publications(process->job)) : json_array());
    json_object_set_new(item, "observers", json_integer(count_observers(process)));
    json_object_set_new(item, "metadata",
                        process->metadata ? json_incref(process->metadata) : json_null());
    return item;
}

static void list_session(const struct client_session *session, json_t *list)
{
    const struct rpc_process *process;

    list_for_each(process, &session->processes.list, in_table)
        if (process->state != RPC_PROCESS_STARTING && process->state != RPC_PROCESS_FAILED)
            json_array_append_new(list, process_to_json(process));
}

void method_process_list(struct call *call, const struct process_list_params *params)
{
    const struct client *client = call->client;
    const struct client_session *session;
    json_t *list = json_array();

    if (params->all)
        list_for_each(session, &client->server->sessions, in_server)
            list_session(session, list);
    else
        list_session(client->session, list);
    call_reply(call, json_pack("{s:o}", "processes", list));
}
