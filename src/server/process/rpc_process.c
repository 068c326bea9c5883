/* See rpc_process.h. What the job reports becomes events; each is sent to the owner's connection
 * at once and to observers as far as they keep up, and wakes what waits.
 *
 * Back pressure: while the owner's connection has no room the output of the command is held, so its
 * pipe fills and it waits. Without a connection nothing is held: the oldest output goes, counted.
 *
 * A job may not be freed from its own callbacks, so an end only starts a timer. */
#include "server/process/rpc_process.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/strv.h"
#include "loop/loop.h"
#include "rpc/rpc.h"
#include "sandbox/sandbox.h"
#include "server/call.h"
#include "server/client.h"
#include "server/client_session.h"
#include "server/layer/layer_table.h"
#include "server/process/observer.h"
#include "server/process/process_audit.h"
#include "server/process/process_held.h"
#include "server/process/process_network.h"
#include "server/process/process_table.h"
#include "server/process/process_wait.h"
#include "server/process/rpc_event.h"
#include "server/sandbox_request.h"
#include "server/server.h"
#include "timeline/timeline.h"
#include "workspace/workspace.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* --- its numbers, and how it stands --- */

uint64_t rpc_process_last_chunk(const struct rpc_process *process)
{
    struct output_info info;

    output_info(job_output(process->job), &info);
    return info.last_seq;
}

uint64_t rpc_process_last_event(const struct rpc_process *process)
{
    const struct timeline *timeline = job_timeline(process->job);

    return timeline ? timeline_last(timeline) : 0;
}

bool rpc_process_has_exited(const struct rpc_process *process)
{
    return process->state == RPC_PROCESS_EXITED || process->state == RPC_PROCESS_CLOSED;
}

uint64_t rpc_process_next_seq(const struct rpc_process *process)
{
    return rpc_process_last_chunk(process) + 1 + rpc_process_has_exited(process) +
           (process->state == RPC_PROCESS_CLOSED);
}

uint64_t rpc_process_seq_of(const struct rpc_process *process, uint64_t chunk)
{
    return chunk + (rpc_process_has_exited(process) && chunk > process->end.chunks);
}

uint64_t rpc_process_chunk_of(const struct rpc_process *process, uint64_t seq)
{
    return seq - (rpc_process_has_exited(process) && seq > process->end.chunks);
}

const char *rpc_process_stream(const struct rpc_process *process, enum stream stream)
{
    return process->has_tty ? "pty" : stream_name(stream);
}

bool rpc_process_is_live(const struct rpc_process *process)
{
    return process->state == RPC_PROCESS_STARTING || process->state == RPC_PROCESS_RUNNING ||
           job_is_alive(process->job);
}

void rpc_process_state_to_json(const struct rpc_process *process, json_t *object)
{
    bool is_over = rpc_process_has_exited(process);

    json_object_set_new(object, "exited", json_boolean(is_over));
    json_object_set_new(object, "exitCode",
                        is_over ? json_integer(process->end.code) : json_null());
    json_object_set_new(object, "closed", json_boolean(process->state == RPC_PROCESS_CLOSED));
}

/* --- how it ended --- */

/* As in the original: with pipes 128 + n for signal n, on a terminal 1 for any. */
static int exit_code(const struct rpc_process *process)
{
    const struct process_end *end = job_end(process->job);

    if (end->how == PROCESS_SIGNALED && process->has_tty)
        return 1;
    return job_exit_code(process->job);
}

static void rpc_end_fill(const struct rpc_process *process, struct rpc_end *ret)
{
    const struct process_end *end = job_end(process->job);

    ret->code = exit_code(process);
    ret->signal = end->how == PROCESS_SIGNALED ? end->signal : 0;
    if (process->workspace->access)
        job_denials(process->job, &ret->denials);
    ret->is_denied = ret->code != 0 && denials_by_sandbox(&ret->denials);
}

/* --- to the owner --- */

/* The client that events go to; NULL: it is not connected, or the model's calls have it all. */
static struct client *owner_client(const struct rpc_process *process)
{
    return process->delivery == RPC_TAKEN ? NULL : process->owner->client;
}

static struct rpc_event_target owner_target(const struct rpc_process *process)
{
    return (struct rpc_event_target){.peer = owner_client(process)->peer,
                                     .id = process->id,
                                     .scratch = &process->owner->server->scratch};
}

/* Output that has come and was not sent. Returns whether there is room for more. */
static bool owner_send_output(struct rpc_process *process)
{
    const struct rpc_event_target target = owner_target(process);
    struct output *output = job_output(process->job);
    char *piece = process->owner->server->piece;
    struct output_record record;
    bool has_room = rpc_peer_has_room(target.peer);

    for (;;) {
        output_read(output, &process->pushed, OUTPUT_BY_CHUNK, piece, RPC_CHUNK_MAX, &record);
        if (record.kind == OUTPUT_EMPTY || record.kind == OUTPUT_END)
            return has_room;
        if (record.kind == OUTPUT_BYTES)
            has_room = rpc_event_output(&target, process, &record, piece);
    }
}

/* The timeline, as far as there is room: what is kept of it waits for more. */
static void owner_send_events(struct rpc_process *process)
{
    struct rpc_event_target target;

    if (process->state == RPC_PROCESS_STARTING || process->state == RPC_PROCESS_FAILED ||
        process->delivery != RPC_PUSH || !owner_client(process))
        return;
    target = owner_target(process);
    rpc_event_timeline(&target, process, &process->told);
}

static bool pull_has_room(const struct rpc_process *process)
{
    return output_total(job_output(process->job)) - process->asked < RPC_PROCESS_MEMORY / 4;
}

void rpc_process_deliver(struct rpc_process *process)
{
    bool has_room = true;

    if (process->delivery == RPC_TAKEN)
        return;
    if (process->state ==
        RPC_PROCESS_STARTING) /* it may write before the launcher says that it runs */
        has_room = output_total(job_output(process->job)) < RPC_PROCESS_MEMORY / 4;
    else if (process->delivery == RPC_PULL)
        has_room = pull_has_room(process);
    else if (owner_client(process))
        has_room = owner_send_output(process);
    owner_send_events(process);
    job_hold_output(process->job, !has_room && !process->is_terminating && owner_client(process));
}

void rpc_process_asked(struct rpc_process *process, uint64_t offset)
{
    uint64_t total = output_total(job_output(process->job));

    if (process->delivery != RPC_PULL || offset <= process->asked)
        return;
    process->asked = offset < total ? offset : total;
    rpc_process_deliver(process);
}

void rpc_process_on_owner(struct rpc_process *process)
{
    struct output *output = job_output(process->job);

    output_seek_after(output, rpc_process_last_chunk(process), &process->pushed);
    process->told = rpc_process_last_event(process);
    rpc_process_deliver(process);
}

/* --- events --- */

static void defer_wake(struct rpc_process *process)
{
    if (!list_is_empty(&process->waits))
        loop_timer_start(process->wake, 0);
}

static void on_wake(void *data)
{
    owner_send_events(data);
    observers_on_news(data);
    process_waits_answer(data);
}

static void rpc_process_exit(struct rpc_process *process)
{
    if (process->state != RPC_PROCESS_RUNNING)
        return;
    rpc_end_fill(process, &process->end);
    process->end.chunks = rpc_process_last_chunk(process);
    owner_send_events(process); /* what it did comes before its end, when there is room */
    process->state = RPC_PROCESS_EXITED;
    if (owner_client(process)) {
        const struct rpc_event_target target = owner_target(process);

        rpc_event_exited(&target, process);
    }
    observers_on_news(process);
    defer_wake(process);
    process_audit_end(process);
    log_event(LOG_LEVEL_DEBUG, "process-exited", log_text("session", process->owner->id),
              log_text("process", process->id), log_int("code", process->end.code));
}

static void set_open(struct rpc_process *process, bool on)
{
    struct server *server = process->owner->server;

    if (process->is_open == on)
        return;
    process->is_open = on;
    server->open += on ? 1 : (size_t)-1;
    if (!on)
        stopping_check(server);
}

static size_t retained_bytes(const struct rpc_process *process)
{
    const struct timeline *timeline = job_timeline(process->job);

    return output_memory(job_output(process->job)) + (timeline ? timeline_memory(timeline) : 0);
}

static void rpc_process_close(struct rpc_process *process)
{
    if (process->state != RPC_PROCESS_EXITED)
        return;
    owner_send_events(process);
    process->state = RPC_PROCESS_CLOSED;
    set_open(process, false);
    if (owner_client(process)) {
        const struct rpc_event_target target = owner_target(process);

        rpc_event_closed(&target, process);
    }
    observers_on_news(process);
    defer_wake(process);
    retained_add(&process->owner->server->retained, process, retained_bytes(process));
    loop_timer_start(process->last, RPC_PROCESS_RETENTION_NS);
}

/* --- the start --- */

static void answer_start(struct rpc_process *process)
{
    struct call *call = TAKE_PTR(process->start);
    AUTO(strv_done) struct strv warnings = {0};

    json_t *result;

    if (!call)
        return;
    resource_limits_warn(job_limits(process->job, NULL), &warnings);
    result = json_pack("{s:s, s:s, s:o*}", "processId", process->id, "sandboxType",
                       process->sandbox_type, "warnings",
                       warnings.len ? json_lossy_list(strv_view(&warnings)) : NULL);
    if (process->layer_step && process->workspace) {
        const struct layer *layer = process->workspace->layer;
        const bool is_shared = layer_step_is_shared(layer, process->layer_step);

        json_object_set_new(result, "stepId", json_integer(process->layer_step));
        json_object_set_new(result, "shared", json_boolean(is_shared));
    }
    call_reply(call, result);
}

/* The text of the original, from which its clients know what is missing, and ours beside it. */
static void refuse_start(struct rpc_process *process, const struct process_end *end)
{
    static const char *const stages[] = {
        [LAUNCH_STAGE_SANDBOX] = "sandbox",
        [LAUNCH_STAGE_CWD] = "cwd",
        [LAUNCH_STAGE_EXEC] = "exec",
    };
    struct call *call = TAKE_PTR(process->start);
    const struct err *failure = &end->failure;
    AUTO_JSON json_t *limit = limit_data_of_errno(failure->sys);
    AUTO_FREE char *text = NULL;
    json_t *data;

    if (!call)
        return;
    if (end->how != PROCESS_FAILED_TO_START) {
        call_fail(call, RPC_INVALID_REQUEST, "process %s was terminated while it started",
                  process->id);
        return;
    }
    if (failure->sys && end->stage != LAUNCH_STAGE_SANDBOX)
        text = alloc_strf("%s (os error %d)", strerror(failure->sys), failure->sys);
    data = json_pack("{s:s, s:s}", "stage", stages[end->stage], "detail", failure->msg);
    if (end->stage == LAUNCH_STAGE_EXEC)
        json_object_set_new(data, "exitCode", json_integer(process_end_exit_code(end)));
    json_object_update(data, limit);
    call_fail_data(call, RPC_INTERNAL, text ? text : failure->msg, data);
}

static void on_started(struct rpc_process *process)
{
    process->state = RPC_PROCESS_RUNNING;
    answer_start(process);
    server_on_started(process->owner->server, process->workspace);
    rpc_process_deliver(process);
    observers_on_news(process);
    defer_wake(process);
}

/* What a model's command writes can reach its calls before the launcher got to say that it runs. */
static void on_output(struct output_watch *watch)
{
    struct rpc_process *process = container_of(watch, struct rpc_process, output_watch);

    if (process->delivery == RPC_TAKEN && process->state == RPC_PROCESS_STARTING &&
        rpc_process_last_chunk(process))
        on_started(process);
    rpc_process_deliver(process);
    observers_on_news(process);
    defer_wake(process);
}

static void on_failed(struct rpc_process *process)
{
    refuse_start(process, job_end(process->job));
    process->state = RPC_PROCESS_FAILED;
    process_audit_end(process);
    set_open(process, false);
    loop_timer_start(process->last, 0);
}

static void on_session(struct job_watch *watch, enum job_event event)
{
    struct rpc_process *process = container_of(watch, struct rpc_process, job_watch);

    switch (event) {
    case JOB_STARTED:
        if (process->state == RPC_PROCESS_STARTING)
            on_started(process);
        break;
    case JOB_TRACED: /* told when the loop has come round, with all that came meanwhile */
        process_audit_trace(process);
        loop_timer_start(process->wake, 0);
        break;
    case JOB_STOPPED:
    case JOB_ROOM:
    case JOB_HELD:
    case JOB_RELEASED:
        break;
    case JOB_EXITED:
        rpc_process_exit(process);
        break;
    case JOB_READ_OUT:
        rpc_process_close(process);
        break;
    case JOB_ENDED:
        if (process->state == RPC_PROCESS_STARTING) {
            on_failed(process);
            break;
        }
        rpc_process_exit(process);
        rpc_process_close(process);
        workspace_release(TAKE_PTR(process->workspace));
        client_session_on_idle(process->owner);
        break;
    }
}

/* The time of something that is closed is up, unless a child of it still runs. */
static void on_last(void *data)
{
    struct rpc_process *process = data;

    if (process->state == RPC_PROCESS_CLOSED && job_is_alive(process->job))
        loop_timer_start(process->last, RPC_PROCESS_RETENTION_NS);
    else
        rpc_process_free(process);
}

/* --- control --- */

int rpc_process_terminate(struct rpc_process *process, uint64_t grace_ns, bool *ret_was_running,
                          struct err *err)
{
    bool is_running = !rpc_process_has_exited(process);

    process->is_terminating = true;
    if (job_terminate(process->job, grace_ns, err))
        return -1;
    rpc_process_deliver(process);
    *ret_was_running = is_running;
    return 0;
}

/* --- life --- */

static void start_is_gone(void *data)
{
    ((struct rpc_process *)data)->start = NULL;
}

static void process_auto_free(struct rpc_process **slot)
{
    rpc_process_free(*slot);
}

static struct rpc_process *process_alloc(const struct rpc_process_options *options)
{
    const struct process_options *from = options->process;
    struct rpc_process *process = alloc_zero(1, sizeof *process);
    struct loop *loop = options->owner->server->loop;

    process->job_watch.on_event = on_session;
    process->output_watch.on_new = on_output;
    process->id = alloc_str(options->id);
    process->owner = options->owner;
    process->workspace = options->workspace;
    workspace_hold(process->workspace);
    process->sandbox_type = process->workspace->type;
    if (process->workspace->layer)
        process->layer_id = alloc_str(layer_id(process->workspace->layer));
    strv_push_all(&process->argv, from->argv);
    process->cwd = alloc_str(from->cwd);
    process->metadata = json_incref(options->metadata);
    process->started_ms = clock_wall_ns() / CLOCK_NS_PER_MS;
    process->has_tty = from->stdio == PROCESS_TTY;
    process->takes_input = process->has_tty || from->input == PROCESS_STDIN_PIPE;
    process->delivery = options->delivery;
    process->is_managed = options->network && options->network->has_proxy;
    process->review_ns = process->is_managed ? options->network->review_ns : 0;
    process->job = options->lent;
    process->is_lent = options->lent;
    process->number = options->number;
    process->wake = loop_timer_new(loop, on_wake, process);
    process->last = loop_timer_new(loop, on_last, process);
    return process;
}

static struct job *process_session(const struct rpc_process *process,
                                   const struct rpc_process_options *options, struct err *err)
{
    const struct spool_options spool = {.quota = options->spool_bytes};
    const struct job_options session = {
        .command = process->argv.items[0],
        .process = options->process,
        .access = options->workspace->access,
        .topics = options->workspace->topics,
        .audit_topics = options->workspace->audit_topics,
        .is_judged = workspace_judges_execs(options->workspace),
        .limits = options->limits,
        .output = {.memory_max = RPC_PROCESS_MEMORY, .spool = options->spool_bytes ? &spool : NULL},
    };

    return job_start(&session, err);
}

struct rpc_process *rpc_process_new(const struct rpc_process_options *options, struct err *err)
{
    AUTO(process_auto_free) struct rpc_process *process = process_alloc(options);

    if (!options->lent)
        process->job = process_session(process, options, err);
    if (!process->job)
        return NULL;
    if (process->layer_id)
        process->layer_step = layer_note_step(process->owner->server, process->workspace->layer);
    job_watch(process->job, &process->job_watch);
    output_watch(job_output(process->job), &process->output_watch);
    process_table_add(&options->owner->processes, process);
    set_open(process, true);
    process_audit_begin(process, options->process->env);
    process_hold(process, options->process);
    process->start = options->start;
    if (process->start)
        call_on_gone(process->start, start_is_gone, process);
    log_event(LOG_LEVEL_DEBUG, "process-started", log_text("session", process->owner->id),
              log_text("process", process->id), log_text("program", process->argv.items[0]),
              log_text("sandbox", process->sandbox_type));
    return TAKE_PTR(process);
}

void rpc_process_free(struct rpc_process *process)
{
    if (!process)
        return;
    if (process->start)
        call_fail(TAKE_PTR(process->start), RPC_INVALID_REQUEST, "the session has ended");
    if (process->job) {
        process_audit_end(process);
        set_open(process, false);
        process_waits_drop(process);
        observers_drop(process);
        retained_remove(&process->owner->server->retained, process);
        process_table_remove(&process->owner->processes, process);
        output_unwatch(&process->output_watch);
        job_unwatch(&process->job_watch);
    }
    loop_timer_free(process->wake);
    loop_timer_free(process->last);
    if (!process->is_lent)
        job_free(process->job);
    else if (process->job)
        job_set_asker(process->job, NULL);
    if (process->workspace)
        workspace_release(process->workspace);
    denials_done(&process->end.denials);
    strv_done(&process->argv);
    audit_trail_done(&process->trail);
    json_decref(process->metadata);
    free(process->layer_id);
    free(process->cwd);
    free(process->id);
    free(process);
}
