/* The life of one connection (stages, deadlines, the way out), and bytes out.
 *
 * Nothing here calls the owner from inside a call of the owner. What has to be said later (a peer
 * left, a peer that was attached is there) is done by the hub's `deferred` timer, which finds it by
 * the stage and the flags. Nothing but that timer frees a peer either, so a callback that holds one
 * still has it after.
 *
 * A message is written at once when nothing waits before it: the answer to a small request never
 * goes through the loop. What the kernel does not take is copied (or taken) into the outbox, and
 * goes out in the order of arrival when the descriptor gets writable. The outbox is a ring of blocks,
 * one for each message that did not fit, so that writev(2) takes many at once and nothing is moved
 * when some is taken. An empty one holds no memory: most peers are idle.
 *
 * Calls to the peer are a list, oldest first: a peer is asked little at a time. A call that was
 * cancelled or timed out stays without its callback until its answer comes, because an answer to
 * nothing closes the connection and the peer cannot know that the caller waits no more. Each costs
 * 64 bytes and a peer that never answers makes them pile up, so the oldest of more than STALE_MAX
 * go. Callbacks may add and cancel, so a call is taken out of the list before its callback is called,
 * and the list is walked from the beginning again after. */
#include "rpc/peer.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "rpc/transport/http.h"
#include "rpc/transport/stream.h"
#include "rpc/transport/ws.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FLUSH_S = 5,    /* a peer that is being closed may take nothing for so long */
    LINGER_S = 2,   /* for the other end to close, when all is written */
    PARTS_MAX = 64, /* of one writev(2) */
    STALE_MAX = 1024,
};

/* --- what the peer has not taken yet --- */

struct outbox_piece {
    char *data; /* owned */
    size_t len;
    size_t sent;
};

static struct outbox_piece *outbox_at(const struct outbox *outbox, size_t index)
{
    return &outbox->pieces[(outbox->first + index) % outbox->cap];
}

static void outbox_drop_first(struct outbox *outbox)
{
    free(outbox_at(outbox, 0)->data);
    outbox->first = (outbox->first + 1) % outbox->cap;
    outbox->count--;
}

void outbox_done(struct outbox *outbox)
{
    while (outbox->count)
        outbox_drop_first(outbox);
    free(outbox->pieces);
    *outbox = (struct outbox){0};
}

void outbox_push_take(struct outbox *outbox, char *data, size_t len, size_t skip)
{
    if (skip >= len) {
        free(data);
        return;
    }
    if (outbox->count == outbox->cap) {
        size_t cap = outbox->cap ? outbox->cap * 2 : 16;
        struct outbox_piece *pieces = alloc_zero(cap, sizeof *pieces);

        for (size_t i = 0; i < outbox->count; i++)
            pieces[i] = *outbox_at(outbox, i);
        free(outbox->pieces);
        outbox->pieces = pieces;
        outbox->cap = cap;
        outbox->first = 0;
    }
    *outbox_at(outbox, outbox->count++) =
        (struct outbox_piece){.data = data, .len = len, .sent = skip};
    outbox->len += len - skip;
}

void outbox_push(struct outbox *outbox, const struct iovec *parts, size_t count, size_t skip)
{
    size_t total = 0;
    size_t len = 0;
    char *data;

    for (size_t i = 0; i < count; i++)
        total += parts[i].iov_len;
    if (skip >= total)
        return;
    data = alloc_resize(NULL, total - skip, 1);
    for (size_t i = 0; i < count; i++) {
        size_t skipped = skip < parts[i].iov_len ? skip : parts[i].iov_len;

        if (parts[i].iov_len > skipped)
            memcpy(data + len, (const char *)parts[i].iov_base + skipped,
                   parts[i].iov_len - skipped);
        len += parts[i].iov_len - skipped;
        skip -= skipped;
    }
    outbox_push_take(outbox, data, len, 0);
}

size_t outbox_peek(const struct outbox *outbox, struct iovec *ret, size_t max)
{
    size_t n = 0;

    for (; n < outbox->count && n < max; n++) {
        const struct outbox_piece *piece = outbox_at(outbox, n);

        ret[n] = (struct iovec){piece->data + piece->sent, piece->len - piece->sent};
    }
    return n;
}

void outbox_consume(struct outbox *outbox, size_t len)
{
    while (len && outbox->count) {
        struct outbox_piece *piece = outbox_at(outbox, 0);
        size_t left = piece->len - piece->sent;

        if (len < left) {
            piece->sent += len;
            outbox->len -= len;
            return;
        }
        len -= left;
        outbox->len -= left;
        outbox_drop_first(outbox);
    }
    if (!outbox->count)
        outbox_done(outbox);
}

/* --- calls that it has not answered yet --- */

struct peer_call {
    struct list in_peer;
    int64_t id;
    uint64_t due_ns;          /* UINT64_MAX: never */
    rpc_answer_fn *on_answer; /* NULL: the caller waits no more */
    void *data;
};

static void call_drop(struct peer_call *call)
{
    list_remove(&call->in_peer);
    free(call);
}

static struct peer_call *peer_find_call(const struct rpc_peer *peer, int64_t id)
{
    struct peer_call *call;

    list_for_each(call, &peer->calls, in_peer)
        if (call->id == id)
            return call;
    return NULL;
}

static void peer_make_stale(struct rpc_peer *peer, struct peer_call *call)
{
    struct peer_call *following;
    size_t stale = 0;

    call->on_answer = NULL;
    call->due_ns = UINT64_MAX;
    list_for_each(call, &peer->calls, in_peer)
        stale += !call->on_answer;
    list_for_each_safe(call, following, &peer->calls, in_peer) {
        if (stale <= STALE_MAX)
            return;
        if (!call->on_answer) {
            call_drop(call);
            stale--;
        }
    }
}

/* Takes the call out, then calls back. */
static void call_finish(struct peer_call *call, const struct rpc_message *answer)
{
    const struct peer_call found = *call;

    call_drop(call);
    if (found.on_answer)
        found.on_answer(found.data, answer);
}

bool peer_take_answer(struct rpc_peer *peer, const struct rpc_message *answer)
{
    struct peer_call *call =
        json_is_integer(answer->id) ? peer_find_call(peer, json_integer_value(answer->id)) : NULL;

    if (call)
        call_finish(call, answer);
    return call != NULL;
}

void peer_expire_calls(struct rpc_peer *peer, uint64_t now_ns)
{
    struct peer_call *call = list_first(&peer->calls, struct peer_call, in_peer);

    while (call) {
        const struct peer_call found = *call;

        if (found.due_ns > now_ns) {
            call = list_item(list_after(&peer->calls, &call->in_peer), struct peer_call, in_peer);
            continue;
        }
        peer_make_stale(peer, call);
        if (found.on_answer)
            found.on_answer(found.data, NULL);
        call = list_first(&peer->calls, struct peer_call, in_peer);
    }
}

uint64_t peer_calls_due_ns(const struct rpc_peer *peer)
{
    const struct peer_call *call;
    uint64_t due_ns = UINT64_MAX;

    list_for_each(call, &peer->calls, in_peer)
        if (call->due_ns < due_ns)
            due_ns = call->due_ns;
    return due_ns;
}

void peer_fail_calls(struct rpc_peer *peer)
{
    struct peer_call *call;

    while ((call = list_first(&peer->calls, struct peer_call, in_peer)))
        call_finish(call, NULL);
}

/* --- the life of a peer --- */

struct rpc_peer *peer_new(struct rpc_hub *hub, struct stream *stream, enum rpc_transport transport,
                          const char *name)
{
    struct rpc_peer *peer = alloc_zero(1, sizeof *peer);

    *peer = (struct rpc_peer){
        .hub = hub,
        .stream = stream,
        .transport = transport,
        .deadline_ns = UINT64_MAX,
    };
    snprintf(peer->name, sizeof peer->name, "%.*s", PEER_NAME_SIZE - 1, name);
    buf_init(&peer->early, HTTP_HEAD_MAX);
    list_append(&hub->peers, &peer->in_hub);
    return peer;
}

void peer_free(struct rpc_peer *peer)
{
    struct peer_call *call;

    list_remove(&peer->in_hub);
    admission_withdraw(&peer->admission);
    stream_free(peer->stream);
    ws_free(peer->ws);
    rpc_lines_done(&peer->lines);
    buf_done(&peer->early);
    outbox_done(&peer->outbox);
    while ((call = list_first(&peer->calls, struct peer_call, in_peer)))
        call_drop(call);
    free(peer);
}

bool peer_is_open(const struct rpc_peer *peer)
{
    return peer->stage == PEER_WS || peer->stage == PEER_LINES;
}

/* Reading stops while the owner says so and while more than queue_stop is queued for the peer. */
bool peer_may_read(const struct rpc_peer *peer)
{
    return peer_is_open(peer) && peer->is_announced && !peer->is_paused &&
           peer->outbox.len < peer->hub->options.queue_stop;
}

void peer_announce(struct rpc_peer *peer)
{
    const struct rpc_hub_options *options = &peer->hub->options;

    peer->is_announced = true;
    peer->hub->stats.peers_open++;
    peer->hub->stats.peers_opened++;
    if (options->handlers->on_open)
        options->handlers->on_open(options->data, peer);
}

void peer_set_deadline(struct rpc_peer *peer, uint64_t seconds)
{
    peer->deadline_ns = clock_after(clock_now_ns(), seconds * CLOCK_NS_PER_S);
    hub_due_by(peer->hub, peer->deadline_ns);
}

void peer_leave(struct rpc_peer *peer, const char *why)
{
    if (peer->stage >= PEER_FLUSH)
        return;
    snprintf(peer->why, sizeof peer->why, "%s", why);
    admission_withdraw(&peer->admission);
    peer->stage = PEER_FLUSH;
    peer_set_deadline(peer, FLUSH_S);
    peer_update_interest(peer);
    hub_defer(peer->hub);
}

void peer_break(struct rpc_peer *peer, const char *why)
{
    if (peer->stage < PEER_FLUSH)
        snprintf(peer->why, sizeof peer->why, "%s", why);
    admission_withdraw(&peer->admission);
    peer->stage = PEER_DEAD;
    stream_want(peer->stream, LOOP_NOTHING);
    hub_defer(peer->hub);
}

void peer_update_interest(struct rpc_peer *peer)
{
    bool awaits_head =
        peer->stage == PEER_HEAD && !peer->is_waiting && peer->admission.state == ADMISSION_UNASKED;
    unsigned interest = peer->outbox.len ? LOOP_WRITE : LOOP_NOTHING;

    if (peer->stage == PEER_FLUSH && !peer->outbox.len) {
        stream_end_writing(peer->stream);
        peer->stage = PEER_LINGER;
        peer_set_deadline(peer, LINGER_S);
    }
    if (awaits_head || peer->stage == PEER_LINGER || peer_may_read(peer))
        interest |= LOOP_READ;
    stream_want(peer->stream, peer->stage == PEER_DEAD ? LOOP_NOTHING : interest);
}

/* --- bytes out --- */

/* Writes at once what can be; returns the bytes that are done with. */
static size_t peer_try(struct rpc_peer *peer, const struct iovec *parts, size_t count)
{
    ssize_t n;

    if (peer->outbox.len)
        return 0;
    n = stream_write(peer->stream, parts, count);
    if (n == STREAM_BROKEN)
        peer_break(peer, "the connection broke");
    if (n < 0)
        return 0;
    peer->hub->stats.bytes_out += (uint64_t)n;
    return (size_t)n;
}

void peer_put(struct rpc_peer *peer, const void *bytes, size_t len)
{
    const struct iovec part = {(void *)bytes, len};
    size_t done = peer_try(peer, &part, 1);

    if (peer->stage != PEER_DEAD)
        outbox_push(&peer->outbox, &part, 1, done);
    peer_update_interest(peer);
}

void peer_write(struct rpc_peer *peer)
{
    const struct rpc_hub_options *options = &peer->hub->options;
    struct iovec parts[PARTS_MAX];

    while (peer->outbox.len && peer->stage != PEER_DEAD) {
        ssize_t n = stream_write(peer->stream, parts, outbox_peek(&peer->outbox, parts, PARTS_MAX));

        if (n == STREAM_AGAIN)
            break;
        if (n < 0) {
            peer_break(peer, "the connection broke");
            break;
        }
        outbox_consume(&peer->outbox, (size_t)n);
        peer->hub->stats.bytes_out += (uint64_t)n;
        peer->alive_ns = clock_now_ns();
        if (peer->stage == PEER_FLUSH)
            peer->deadline_ns = clock_after(peer->alive_ns, FLUSH_S * CLOCK_NS_PER_S);
    }
    if (peer->is_full && peer->outbox.len <= options->queue_low && peer_is_open(peer)) {
        peer->is_full = false;
        if (options->handlers->on_room)
            options->handlers->on_room(options->data, peer);
    }
    if (peer->has_leftover && peer_may_read(peer))
        hub_defer(peer->hub);
}

/* The bytes around a text: a WebSocket head before it, or a line feed behind it. */
struct frame {
    uint8_t head[WS_HEAD_MAX];
    struct iovec parts[2];
    size_t text; /* which of the parts it is */
};

/* What goes to a WebSocket server goes masked, in place. */
static bool peer_masks(const struct rpc_peer *peer)
{
    return peer->stage == PEER_WS && peer->is_server;
}

static void frame_make(struct frame *frame, const struct rpc_peer *peer, const char *text,
                       size_t len)
{
    const struct iovec body = {(void *)text, len};
    size_t head_len = 0;

    frame->text = peer->stage == PEER_WS;
    frame->parts[frame->text] = body;
    if (peer_masks(peer))
        head_len = ws_head_masked((char *)text, len, frame->head);
    else if (peer->stage == PEER_WS)
        head_len = ws_head(len, frame->head);
    if (peer->stage == PEER_WS)
        frame->parts[0] = (struct iovec){frame->head, head_len};
    else
        frame->parts[1] = (struct iovec){(void *)"\n", 1};
}

static bool peer_report_room(struct rpc_peer *peer)
{
    bool has_room = rpc_peer_has_room(peer);

    peer->hub->stats.messages_out++;
    if (!has_room)
        peer->is_full = true;
    peer_update_interest(peer);
    return has_room;
}

bool rpc_peer_has_room(const struct rpc_peer *peer)
{
    return peer_is_open(peer) && peer->outbox.len < peer->hub->options.queue_high;
}

bool rpc_peer_send(struct rpc_peer *peer, const char *text, size_t len)
{
    struct frame frame;
    size_t done;

    if (!peer_is_open(peer))
        return false;
    if (peer_masks(peer))
        return rpc_peer_send_take(peer, alloc_strn(text, len), len);
    frame_make(&frame, peer, text, len);
    done = peer_try(peer, frame.parts, 2);
    if (peer->stage == PEER_DEAD)
        return false;
    outbox_push(&peer->outbox, frame.parts, 2, done);
    return peer_report_room(peer);
}

bool rpc_peer_send_take(struct rpc_peer *peer, char *text, size_t len)
{
    struct frame frame;
    size_t done;

    if (!peer_is_open(peer)) {
        free(text);
        return false;
    }
    frame_make(&frame, peer, text, len);
    done = peer_try(peer, frame.parts, 2);
    if (peer->stage == PEER_DEAD) {
        free(text);
        return false;
    }
    for (size_t i = 0; i < 2; i++) {
        size_t size = frame.parts[i].iov_len;
        size_t skip = done < size ? done : size;

        if (i == frame.text)
            outbox_push_take(&peer->outbox, text, len, skip);
        else
            outbox_push(&peer->outbox, &frame.parts[i], 1, skip);
        done -= skip;
    }
    return peer_report_room(peer);
}

/* Sends what was put together, unless that failed: memory or ill-formed
 * text can be the reason, and a message that is not whole must not go out. */
static bool peer_send_buf(struct rpc_peer *peer, struct buf *buf, bool is_whole)
{
    size_t len = buf->len;

    if (!is_whole) {
        rpc_peer_close(peer, RPC_CLOSE_INTERNAL, "a message could not be written");
        return false;
    }
    return rpc_peer_send_take(peer, buf_take(buf), len);
}

bool rpc_peer_result(struct rpc_peer *peer, const json_t *id, const json_t *result)
{
    AUTO(buf_done) struct buf buf;

    buf_init(&buf, SIZE_MAX / 2);
    return peer_send_buf(
        peer, &buf, rpc_text_result(&buf, id) && rpc_text_json(&buf, result) && rpc_text_end(&buf));
}

static bool append_params(struct buf *buf, const json_t *params)
{
    return params ? rpc_text_json(buf, params) : buf_append_str(buf, "{}");
}

bool rpc_peer_notify(struct rpc_peer *peer, const char *method, const json_t *params)
{
    AUTO(buf_done) struct buf buf;

    buf_init(&buf, SIZE_MAX / 2);
    return peer_send_buf(peer, &buf,
                         rpc_text_notification(&buf, method) && append_params(&buf, params) &&
                             rpc_text_end(&buf));
}

bool rpc_peer_fail(struct rpc_peer *peer, const json_t *id, const struct rpc_failure *failure)
{
    AUTO(buf_done) struct buf buf;

    buf_init(&buf, SIZE_MAX / 2);
    return peer_send_buf(peer, &buf, rpc_text_error(&buf, id, failure));
}

bool rpc_peer_error(struct rpc_peer *peer, const json_t *id, enum rpc_code code, const char *fmt,
                    ...)
{
    AUTO_FREE char *text = NULL;
    struct rpc_failure failure = {.code = code};
    va_list args;

    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        text = alloc_str("an error without words");
    va_end(args);
    failure.message = text;
    return rpc_peer_fail(peer, id, &failure);
}

int64_t rpc_peer_call(struct rpc_peer *peer, const struct rpc_call *asked)
{
    struct peer_call *call = alloc_zero(1, sizeof *call);
    uint64_t due = asked->timeout_ns ? clock_after(clock_now_ns(), asked->timeout_ns) : UINT64_MAX;
    int64_t id = ++peer->last_call_id;
    AUTO(buf_done) struct buf buf;

    *call = (struct peer_call){
        .id = id, .due_ns = due, .on_answer = asked->on_answer, .data = asked->data};
    list_append(&peer->calls, &call->in_peer);
    buf_init(&buf, SIZE_MAX / 2);
    peer_send_buf(peer, &buf,
                  rpc_text_request(&buf, id, asked->method) && append_params(&buf, asked->params) &&
                      rpc_text_end(&buf));
    if (due != UINT64_MAX)
        hub_due_by(peer->hub, due);
    return id;
}

void rpc_peer_call_cancel(struct rpc_peer *peer, int64_t id)
{
    struct peer_call *call = peer_find_call(peer, id);

    if (call)
        peer_make_stale(peer, call);
}

/* --- what the owner sees --- */

void rpc_peer_set_data(struct rpc_peer *peer, void *data)
{
    peer->data = data;
}

void *rpc_peer_data(const struct rpc_peer *peer)
{
    return peer->data;
}

const char *rpc_peer_name(const struct rpc_peer *peer)
{
    return peer->name;
}

enum rpc_transport rpc_peer_transport(const struct rpc_peer *peer)
{
    return peer->transport;
}

void rpc_peer_pause(struct rpc_peer *peer)
{
    peer->is_paused = true;
    peer_update_interest(peer);
}

void rpc_peer_resume(struct rpc_peer *peer)
{
    peer->is_paused = false;
    peer->alive_ns = clock_now_ns();
    peer_update_interest(peer);
    if (peer->has_leftover)
        hub_defer(peer->hub);
}

void rpc_peer_close(struct rpc_peer *peer, enum rpc_close_code code, const char *reason)
{
    if (!peer_is_open(peer))
        return;
    if (peer->stage == PEER_WS)
        ws_close(peer->ws, (uint16_t)code, reason);
    peer_leave(peer, reason ? reason : "closed by us");
}
