/* Bytes out. A message is written at once when nothing waits before it: the answer to a small
 * request never goes through the loop. What the kernel does not take is copied (or taken) into the
 * outbox, and goes out in the order of arrival when the descriptor gets writable. */
#include "rpc/parts.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "loop/loop.h"
#include "rpc/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS_MAX = 64 }; /* of one writev(2) */

/* Writes at once what can be; returns the bytes that are done with. */
static size_t peer_try(struct rpc_peer *peer, const struct iovec *parts, size_t count)
{
    ssize_t n;

    if (peer->outbox.len)
        return 0;
    n = channel_write(peer->channel, parts, count);
    if (n == CHANNEL_BROKEN)
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
    peer_settle(peer);
}

static void peer_write_room(struct rpc_peer *peer)
{
    const struct rpc_hub_options *options = &peer->hub->options;

    if (!peer->is.is_full || peer->outbox.len > options->queue_low || !peer_is_open(peer))
        return;
    peer->is.is_full = false;
    if (options->handlers->on_room)
        options->handlers->on_room(options->data, peer);
}

void peer_write(struct rpc_peer *peer)
{
    struct iovec parts[PARTS_MAX];

    while (peer->outbox.len && peer->stage != PEER_DEAD) {
        ssize_t n =
            channel_write(peer->channel, parts, outbox_peek(&peer->outbox, parts, PARTS_MAX));

        if (n == CHANNEL_AGAIN)
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
    peer_write_room(peer);
    if (peer->is.has_leftover && peer_may_read(peer))
        hub_soon(peer->hub);
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
    return peer->stage == PEER_WS && peer->is.is_server;
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
        peer->is.is_full = true;
    peer_settle(peer);
    return has_room;
}

bool rpc_peer_has_room(const struct rpc_peer *peer)
{
    return peer_is_open(peer) && peer->outbox.len < peer->hub->options.queue_high;
}

size_t rpc_peer_queued(const struct rpc_peer *peer)
{
    return peer->outbox.len;
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

/* Sends what was put together, unless that failed: only memory's end or a broken text can make it,
 * and a message that is not whole must not go out. */
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

void peer_send_request(struct rpc_peer *peer, int64_t id, const struct rpc_call *call)
{
    AUTO(buf_done) struct buf buf;

    buf_init(&buf, SIZE_MAX / 2);
    peer_send_buf(peer, &buf,
                  rpc_text_request(&buf, id, call->method) && append_params(&buf, call->params) &&
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
