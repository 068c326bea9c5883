/* See process_wait.h. An answer is made when the loop has come round (rpc_process.c wakes), so
 * that it holds all that has come meanwhile, and a handler is never called out of another one.
 *
 * process/read answers with retained output, chunk by chunk, as text. Every chunk is an event with
 * a number; the first one comes whole whatever its size, further ones as long as they fit. What is
 * not retained any more is told beside the chunks. A read usually goes on where the last one ended,
 * so its cursor is kept and nothing has to be searched for. */
#include "server/process/process_wait.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "job/result_json.h"
#include "loop/loop.h"
#include "rpc/message.h"
#include "server/call.h"
#include "server/client.h"
#include "server/client_session.h"
#include "server/process/rpc_event.h"
#include "server/process/rpc_process.h"
#include "server/server.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>

enum { READ_BYTES_MAX = 8 << 20 }; /* of output in one answer: a message is 16 MiB at most */

static void find_read(struct rpc_process *process, const struct process_wait *wait,
                      struct output_cursor *ret)
{
    struct output *output = job_output(process->job);
    uint64_t chunk = rpc_process_chunk_of(process, wait->after_seq);

    if (wait->offset != UINT64_MAX) {
        uint64_t total = output_total(output);

        output_seek(output, wait->offset < total ? wait->offset : total, ret);
    } else if (process->found.seq == chunk && !process->found.left && chunk) {
        *ret = process->found;
    } else {
        output_seek_after(output, chunk, ret);
    }
}

/* What one answer is made of. */
struct reading {
    struct rpc_process *process;
    struct buf *text;
    struct buf lost; /* the array of that name; empty: none */
    uint64_t bytes;
    uint64_t last_seq; /* of the last chunk; 0: none */
    bool is_cut;       /* there is more */
};

static void add_chunk(struct reading *reading, const struct output_record *record,
                      const char *bytes)
{
    struct rpc_process *process = reading->process;
    uint64_t seq = rpc_process_seq_of(process, record->first_seq);

    buf_appendf(reading->text, "%s{\"seq\":%" PRIu64 ",\"stream\":\"%s\",\"chunk\":\"",
                reading->last_seq ? "," : "", seq, rpc_process_stream(process, record->stream));
    rpc_text_base64(reading->text, bytes, (size_t)record->len);
    buf_appendf(reading->text, "\",\"offset\":%" PRIu64 "}", record->offset);
    reading->bytes += record->len;
    reading->last_seq = seq;
}

static void add_gap(struct reading *reading, const struct output_record *record)
{
    buf_appendf(&reading->lost, "%s{\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64 "}",
                reading->lost.len ? "," : "", record->offset, record->len);
}

static void read_chunks(struct reading *reading, struct output_cursor *cursor, uint64_t max)
{
    struct output *output = job_output(reading->process->job);
    char *piece = reading->process->owner->server->piece;
    struct output_record record;

    for (;;) {
        output_peek(output, cursor, &record);
        if (record.kind == OUTPUT_EMPTY || record.kind == OUTPUT_END)
            return;
        if (record.kind == OUTPUT_BYTES && reading->last_seq && reading->bytes + record.len > max) {
            reading->is_cut = true;
            return;
        }
        output_read(output, cursor, OUTPUT_BY_CHUNK, piece, RPC_CHUNK_MAX, &record);
        if (record.kind == OUTPUT_BYTES)
            add_chunk(reading, &record, piece);
        else if (record.kind == OUTPUT_GAP)
            add_gap(reading, &record);
    }
}

static void add_state(struct reading *reading, uint64_t next_seq, uint64_t next_offset)
{
    const struct rpc_process *process = reading->process;
    bool has_exited = rpc_process_has_exited(process);
    char code[16] = "null";

    if (has_exited)
        snprintf(code, sizeof code, "%d", process->end.code);
    buf_appendf(reading->text,
                "],\"nextSeq\":%" PRIu64 ",\"exited\":%s,\"exitCode\":%s,\"closed\":%s,"
                "\"failure\":null,\"sandboxDenied\":%s,\"nextOffset\":%" PRIu64,
                next_seq, has_exited ? "true" : "false", code,
                process->state == RPC_PROCESS_CLOSED ? "true" : "false",
                process->end.is_denied ? "true" : "false", next_offset);
    if (reading->lost.len)
        buf_appendf(reading->text, ",\"lost\":[%s]", reading->lost.data);
    buf_append_str(reading->text, "}");
}

static void process_read_append(struct rpc_process *process, const struct process_wait *wait,
                                struct buf *text)
{
    struct reading reading = {.process = process, .text = text};
    bool has_max = wait->max_bytes != UINT64_MAX;
    uint64_t max = wait->max_bytes < READ_BYTES_MAX ? wait->max_bytes : READ_BYTES_MAX;
    struct output_cursor cursor;

    buf_init(&reading.lost, SIZE_MAX / 2);
    find_read(process, wait, &cursor);
    buf_append_str(text, "{\"chunks\":[");
    read_chunks(&reading, &cursor, max);
    process->found = cursor;
    add_state(&reading,
              reading.last_seq && (has_max || reading.is_cut) ? reading.last_seq + 1
                                                              : rpc_process_next_seq(process),
              cursor.offset);
    buf_done(&reading.lost);
}

static void wait_free(struct process_wait *wait)
{
    list_remove(&wait->in_process);
    loop_timer_free(wait->timer);
    free(wait);
}

/* --- answers --- */

static void answer_read(struct rpc_process *process, struct call *call,
                        const struct process_wait *wait)
{
    process_read_append(process, wait, call_result_begin(call));
    call_result_end(call);
}

static void answer_end(const struct rpc_process *process, struct call *call)
{
    json_t *result = json_object();

    rpc_process_state_to_json(process, result);
    json_object_set_new(result, "signal", signal_to_json(process->end.signal));
    json_object_set_new(result, "sandboxDenied", json_boolean(process->end.is_denied));
    json_object_set_new(result, "denials", denials_to_json(&process->end.denials));
    json_object_set_new(result, "nextSeq", json_integer((json_int_t)rpc_process_next_seq(process)));
    json_object_set_new(result, "nextOffset",
                        json_integer((json_int_t)output_total(job_output(process->job))));
    call_reply(call, result);
}

static void answer_events(const struct rpc_process *process, struct call *call,
                          const struct process_wait *wait)
{
    const struct timeline *timeline = job_timeline(process->job);
    uint64_t after = wait->after_seq;
    struct buf *text = call_result_begin(call);

    buf_append_str(text, "{");
    rpc_event_append_timeline(text, timeline, wait->max_events, &after);
    buf_appendf(text, ",\"closed\":%s}", process->state == RPC_PROCESS_CLOSED ? "true" : "false");
    call_result_end(call);
}

static void wait_answer(struct process_wait *wait)
{
    struct process_wait copy = *wait;

    wait_free(wait);
    call_on_gone(copy.call, NULL, NULL);
    if (copy.kind == WAIT_START)
        client_handle(copy.call);
    else if (copy.kind == WAIT_READ)
        answer_read(copy.process, copy.call, &copy);
    else if (copy.kind == WAIT_EVENTS)
        answer_events(copy.process, copy.call, &copy);
    else
        answer_end(copy.process, copy.call);
}

/* --- is it there --- */

static bool has_output(const struct rpc_process *process, const struct process_wait *wait)
{
    struct output_info info;

    output_info(job_output(process->job), &info);
    if (wait->offset != UINT64_MAX)
        return info.total > wait->offset;
    return info.last_seq > rpc_process_chunk_of(process, wait->after_seq);
}

static bool has_come(const struct rpc_process *process, const struct process_wait *wait)
{
    if (wait->kind == WAIT_START)
        return false; /* begin_what_came_early() */
    if (process->state == RPC_PROCESS_CLOSED)
        return true;
    if (wait->kind == WAIT_CLOSED)
        return false;
    if (wait->kind == WAIT_EVENTS)
        return rpc_process_last_event(process) > wait->after_seq;
    if (wait->kind == WAIT_EXITED)
        return process->state == RPC_PROCESS_EXITED;
    return has_output(process, wait) ||
           (process->state == RPC_PROCESS_EXITED && wait->after_seq <= process->end.chunks);
}

/* They leave the list of the process first: a call that finds one of them there waits behind it. The
 * newest is in front there, and the oldest comes first here. */
static void begin_what_came_early(struct rpc_process *process)
{
    struct process_wait *wait;
    struct process_wait *next;
    struct list early;

    list_init(&early);
    list_for_each_safe(wait, next, &process->waits, in_process) {
        if (wait->kind != WAIT_START)
            continue;
        list_remove(&wait->in_process);
        list_add(&early, &wait->in_process);
    }
    while (!list_is_empty(&early))
        wait_answer(list_first(&early, struct process_wait, in_process));
}

void process_waits_answer(struct rpc_process *process)
{
    struct process_wait *wait;
    struct process_wait *next;

    if (process->state != RPC_PROCESS_STARTING)
        begin_what_came_early(process);

    list_for_each_safe(wait, next, &process->waits, in_process)
        if (has_come(process, wait))
            wait_answer(wait);
}

/* --- life --- */

static void on_time(void *data)
{
    wait_answer(data);
}

static void on_gone(void *data)
{
    wait_free(data);
}

/* The client knows what is before the offset that it reads from. */
static void note_asked(struct rpc_process *process, const struct process_wait *wait)
{
    struct output_cursor cursor;

    if (process->delivery != RPC_PULL)
        return;
    find_read(process, wait, &cursor);
    rpc_process_asked(process, cursor.offset);
}

void process_wait_start(const struct process_wait *from, uint64_t wait_ns)
{
    struct rpc_process *process = from->process;
    struct process_wait *wait = alloc_zero(1, sizeof *wait);

    if (from->kind == WAIT_READ)
        note_asked(process, from);
    *wait = *from;
    list_add(&process->waits, &wait->in_process);
    call_on_gone(wait->call, on_gone, wait);
    if (wait_ns == 0 || has_come(process, wait)) {
        wait_answer(wait);
        return;
    }
    if (wait_ns == UINT64_MAX)
        return;
    wait->timer = loop_timer_new(process->owner->server->loop, on_time, wait);
    loop_timer_start(wait->timer, wait_ns);
}

bool process_wait_for_start(struct rpc_process *process, struct call *call)
{
    bool waits = process->state == RPC_PROCESS_STARTING;
    struct process_wait *wait;

    list_for_each(wait, &process->waits, in_process)
        waits = waits || wait->kind == WAIT_START;
    if (!waits)
        return false;
    process_wait_start(&(struct process_wait){.kind = WAIT_START, .call = call, .process = process},
                       UINT64_MAX);
    return true;
}

void process_waits_drop(struct rpc_process *process)
{
    if (process->state == RPC_PROCESS_FAILED)
        begin_what_came_early(process); /* which finds no process */
    while (!list_is_empty(&process->waits)) {
        struct process_wait *wait = list_first(&process->waits, struct process_wait, in_process);
        struct call *call = wait->call;

        wait_free(wait);
        call_on_gone(call, NULL, NULL);
        call_fail(call, RPC_INVALID_REQUEST, "unknown process id %s", process->id);
    }
}
