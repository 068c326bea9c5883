/* See rpc_event.h. Output is the bulk of the traffic: it is written straight into text and never
 * becomes a tree. Field names and their order are those of the original;
 * what is ours comes last. */
#include "server/process/rpc_event.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "job/result_json.h"
#include "rpc/message.h"
#include "rpc/rpc.h"
#include "server/process/rpc_process.h"
#include "timeline/timeline.h"

#include <inttypes.h>
#include <string.h>

enum { EVENTS_AT_ONCE = 256 }; /* of a timeline, in one message */

/* {"method":M,"params":{"processId":ID,"seq":N */
static struct buf *event_begin(const struct rpc_event_target *target, const char *method)
{
    struct buf *text = target->scratch;

    buf_clear(text);
    rpc_text_notification(text, method);
    buf_append_str(text, "{\"processId\":");
    rpc_text_string(text, target->id, strlen(target->id));
    return text;
}

static bool event_send(const struct rpc_event_target *target)
{
    struct buf *text = target->scratch;

    buf_append_str(text, "}");
    rpc_text_end(text);
    return rpc_peer_send(target->peer, text->data, text->len);
}

bool rpc_event_output(const struct rpc_event_target *target, const struct rpc_process *process,
                      const struct output_record *record, const char *bytes)
{
    struct buf *text = event_begin(target, "process/output");

    buf_appendf(text, ",\"seq\":%" PRIu64 ",\"stream\":\"%s\",\"chunk\":\"",
                rpc_process_seq_of(process, record->first_seq),
                rpc_process_stream(process, record->stream));
    rpc_text_base64(text, bytes, (size_t)record->len);
    buf_appendf(text, "\",\"offset\":%" PRIu64, record->offset);
    return event_send(target);
}

bool rpc_event_gap(const struct rpc_event_target *target, const struct output_record *record)
{
    struct buf *text = event_begin(target, "process/gap");

    buf_appendf(text, ",\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64, record->offset, record->len);
    return event_send(target);
}

bool rpc_event_grown(const struct rpc_event_target *target, uint64_t total)
{
    buf_appendf(event_begin(target, "process/grown"), ",\"nextOffset\":%" PRIu64, total);
    return event_send(target);
}

static void append_json(struct buf *text, const char *name, json_t *value)
{
    buf_appendf(text, ",\"%s\":", name);
    rpc_text_json(text, value);
    json_decref(value);
}

bool rpc_event_exited(const struct rpc_event_target *target, const struct rpc_process *process)
{
    const struct rpc_end *end = &process->end;
    struct buf *text = event_begin(target, "process/exited");

    buf_appendf(text, ",\"seq\":%" PRIu64 ",\"exitCode\":%d,\"sandboxDenied\":%s", end->chunks + 1,
                end->code, end->is_denied ? "true" : "false");
    if (end->signal)
        append_json(text, "signal", signal_to_json(end->signal));
    if (end->denials.len)
        append_json(text, "denials", denials_to_json(&end->denials));
    return event_send(target);
}

bool rpc_event_closed(const struct rpc_event_target *target, const struct rpc_process *process)
{
    struct buf *text = event_begin(target, "process/closed");

    buf_appendf(text, ",\"seq\":%" PRIu64, rpc_process_next_seq(process) - 1);
    return event_send(target);
}

void rpc_event_append_timeline(struct buf *text, const struct timeline *timeline, size_t max,
                               uint64_t *after)
{
    uint64_t gone = timeline_dropped(timeline);
    uint64_t dropped = gone > *after ? gone - *after : 0;
    AUTO_JSON json_t *events = timeline_to_json(timeline, *after, max, after);

    buf_append_str(text, "\"events\":");
    rpc_text_json(text, events);
    buf_appendf(text, ",\"dropped\":%" PRIu64 ",\"nextSeq\":%" PRIu64, dropped, *after + 1);
}

bool rpc_event_timeline(const struct rpc_event_target *target, const struct rpc_process *process,
                        uint64_t *after)
{
    const struct timeline *timeline = job_timeline(process->job);
    bool has_room = rpc_peer_has_room(target->peer);

    while (has_room && timeline && *after < timeline_last(timeline)) {
        struct buf *text = event_begin(target, "session/event");

        buf_append_str(text, ",");
        rpc_event_append_timeline(text, timeline, EVENTS_AT_ONCE, after);
        has_room = event_send(target);
    }
    return has_room;
}
