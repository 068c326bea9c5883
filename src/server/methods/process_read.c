/* process/read: retained output, chunk by chunk, as text.
 *
 * Every chunk is an event with a number; the first one comes whole whatever its size, further ones
 * as long as they fit. What is not retained any more is told beside the chunks. A read usually goes
 * on where the last one ended, so that place is kept and nothing has to be searched for. */
#include "base/buf.h"
#include "base/clock.h"
#include "rpc/text.h"
#include "server/call.h"
#include "server/client_session.h"
#include "server/process/observer.h"
#include "server/process/process_wait.h"
#include "server/process/rpc_event.h"
#include "server/process/rpc_process.h"
#include "server/server.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

enum { READ_BYTES_MAX = 8 << 20 }; /* of output in one answer: a message is 16 MiB at most */

static void place_find_read(struct rpc_process *process, const struct process_wait *wait,
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

static void read_chunks(struct reading *reading, struct output_cursor *place, uint64_t max)
{
    struct output *output = job_output(reading->process->job);
    char *piece = reading->process->owner->server->piece;
    struct output_record record;

    for (;;) {
        output_peek(output, place, &record);
        if (record.kind == OUTPUT_EMPTY || record.kind == OUTPUT_END)
            return;
        if (record.kind == OUTPUT_BYTES && reading->last_seq && reading->bytes + record.len > max) {
            reading->is_cut = true;
            return;
        }
        output_read(output, place, OUTPUT_BY_CHUNK, piece, RPC_CHUNK_MAX, &record);
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

void process_read_append(struct rpc_process *process, const struct process_wait *wait,
                         struct buf *text)
{
    struct reading reading = {.process = process, .text = text};
    bool has_max = wait->max_bytes != UINT64_MAX;
    uint64_t max = wait->max_bytes < READ_BYTES_MAX ? wait->max_bytes : READ_BYTES_MAX;
    struct output_cursor place;

    buf_init(&reading.lost, SIZE_MAX / 2);
    place_find_read(process, wait, &place);
    buf_append_str(text, "{\"chunks\":[");
    read_chunks(&reading, &place, max);
    process->found = place;
    add_state(&reading,
              reading.last_seq && (has_max || reading.is_cut) ? reading.last_seq + 1
                                                              : rpc_process_next_seq(process),
              place.offset);
    buf_done(&reading.lost);
}

/* A number, or what it is when it is not given. */
static uint64_t number_or(const json_t *params, const char *name, uint64_t otherwise)
{
    const json_t *value = json_object_get(params, name);

    return json_is_integer(value) ? (uint64_t)json_integer_value(value) : otherwise;
}

static uint64_t ms_or(const json_t *params, const char *name, uint64_t otherwise_ns)
{
    uint64_t ms = number_or(params, name, UINT64_MAX);

    if (ms == UINT64_MAX)
        return otherwise_ns;
    return ms < UINT64_MAX / CLOCK_NS_PER_MS ? ms * CLOCK_NS_PER_MS : UINT64_MAX;
}

/* The client knows what is before the place that it reads from. */
static void note_asked(struct rpc_process *process, const struct process_wait *wait)
{
    struct output_cursor place;

    if (process->delivery != RPC_PULL)
        return;
    place_find_read(process, wait, &place);
    rpc_process_asked(process, place.offset);
}

void method_process_read(struct call *call, const json_t *params)
{
    struct rpc_process *process = call_process(call, params);
    struct process_wait wait = {
        .kind = WAIT_READ,
        .call = call,
        .process = process,
        .after_seq = number_or(params, "afterSeq", 0),
        .offset = number_or(params, "offset", UINT64_MAX),
        .max_bytes = number_or(params, "maxBytes", UINT64_MAX),
    };

    if (!process)
        return;
    if (process->state == RPC_PROCESS_STARTING) {
        call_fail(call, RPC_INVALID_REQUEST, "process %s is starting", process->id);
        return;
    }
    note_asked(process, &wait);
    process_wait_start(&wait, ms_or(params, "waitMs", 0));
}

void method_process_wait(struct call *call, const json_t *params)
{
    const char *until = json_string_value(json_object_get(params, "until"));
    struct process_wait wait = {
        .kind = until && strcmp(until, "closed") == 0 ? WAIT_CLOSED : WAIT_EXITED,
        .call = call,
        .process = call_process(call, params),
    };

    if (wait.process)
        process_wait_start(&wait, ms_or(params, "timeoutMs", UINT64_MAX));
}
