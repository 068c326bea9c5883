/* Bytes in: from the channel through frames or lines to messages, and from messages to the owner or
 * to the call that one answers.
 *
 * Reading stops while the owner says so and while the peer has more queued for it than queue_stop.
 * What then lies in our own buffers (wslay's, or lines that were read with the last ones) is
 * remembered by a flag, because no descriptor gets readable for it. */
#include "rpc/parts.h"

#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { EARLY_SIZE = 4096 };

bool peer_may_read(const struct rpc_peer *peer)
{
    return peer_is_open(peer) && peer->is.is_announced && !peer->is.is_paused &&
           peer->outbox.len < peer->hub->options.queue_stop;
}

static void peer_refuse_text(struct rpc_peer *peer, const struct err *err)
{
    peer->hub->stats.parse_errors++;
    if (peer->stage == PEER_WS)
        rpc_peer_error(peer, NULL, RPC_INVALID_REQUEST,
                       "failed to parse websocket JSON-RPC message from exec-server websocket "
                       "%s: %s",
                       peer->name, err->msg);
    else
        rpc_peer_error(peer, NULL, RPC_INVALID_REQUEST,
                       "failed to parse JSON-RPC message from exec-server %s: %s",
                       peer->transport == RPC_UNIX ? "unix socket" : "stdio", err->msg);
}

static void peer_dispatch(struct rpc_peer *peer, struct rpc_message *message)
{
    const struct rpc_hub_options *options = &peer->hub->options;

    if (message->kind == RPC_REQUEST || message->kind == RPC_NOTIFICATION)
        options->handlers->on_message(options->data, peer, message);
    else if (!calls_answer(&peer->calls, message))
        rpc_peer_close(peer, RPC_CLOSE_PROTOCOL, "an answer to no request");
}

static void peer_message(void *data, const char *text, size_t len)
{
    struct rpc_peer *peer = data;
    struct rpc_message message;
    struct err err;

    if (!peer_is_open(peer))
        return;
    peer->hub->stats.messages_in++;
    if (rpc_message_parse(text, len, &message, &err)) {
        if (peer->is.is_server)
            rpc_peer_close(peer, RPC_CLOSE_PROTOCOL, "the server sent what is no message");
        else
            peer_refuse_text(peer, &err);
        return;
    }
    peer_dispatch(peer, &message);
    rpc_message_done(&message);
}

/* --- from the channel --- */

static ssize_t peer_fill(struct rpc_peer *peer, void *ret_bytes, size_t len)
{
    ssize_t n = channel_read(peer->channel, ret_bytes, len);

    if (n == 0)
        peer->is.is_at_end = true;
    if (n <= 0)
        return n;
    peer->hub->stats.bytes_in += (uint64_t)n;
    peer->alive_ns = clock_now_ns();
    return n;
}

static void peer_end(struct rpc_peer *peer)
{
    if (peer->is.is_at_end)
        peer_leave(peer, "the connection ended");
    else
        peer_break(peer, "the connection broke");
}

/* --- frames --- */

/* Frames are read in small parts; a read(2) for each would be three for a message. */
static ssize_t peer_fill_early(struct rpc_peer *peer)
{
    char bytes[EARLY_SIZE];
    ssize_t n = peer_fill(peer, bytes, sizeof bytes);

    if (n > 0)
        buf_append(&peer->early, bytes, (size_t)n);
    return n;
}

static ssize_t peer_take_early(struct rpc_peer *peer, void *ret_bytes, size_t len)
{
    if (len > peer->early.len)
        len = peer->early.len;
    memcpy(ret_bytes, peer->early.data, len);
    buf_consume(&peer->early, len);
    if (!peer->early.len)
        buf_done(&peer->early);
    return (ssize_t)len;
}

static ssize_t peer_on_ws_read(void *data, void *ret_bytes, size_t len)
{
    struct rpc_peer *peer = data;
    ssize_t n;

    if (!peer_may_read(peer)) {
        peer->is.has_leftover = true;
        return 0;
    }
    if (peer->early.len)
        return peer_take_early(peer, ret_bytes, len);
    if (!peer->budget)
        return 0;
    n = len >= EARLY_SIZE / 2 ? peer_fill(peer, ret_bytes, len) : peer_fill_early(peer);
    if (n == CHANNEL_AGAIN)
        return 0;
    if (n <= 0)
        return -1;
    peer->budget -= (size_t)n < peer->budget ? (size_t)n : peer->budget;
    return peer->early.len ? peer_take_early(peer, ret_bytes, len) : n;
}

static void peer_on_ws_control(void *data, const void *bytes, size_t len)
{
    peer_put(data, bytes, len);
}

const struct ws_events peer_ws_events = {
    .on_read = peer_on_ws_read,
    .on_message = peer_message,
    .on_control = peer_on_ws_control,
};

static void peer_read_ws(struct rpc_peer *peer)
{
    char why[64];
    enum ws_state state = ws_read(peer->ws);

    if (peer->stage != PEER_WS)
        return;
    switch (state) {
    case WS_OPEN:
        return;
    case WS_CLOSED_BY_PEER:
        peer_leave(peer, "closed by the peer");
        return;
    case WS_CLOSED_BY_US:
        snprintf(why, sizeof why, "refused with code %u", ws_code_sent(peer->ws));
        peer_leave(peer, why);
        return;
    case WS_BROKEN:
        peer_end(peer);
        return;
    }
}

/* --- lines --- */

static void peer_pump_lines(struct rpc_peer *peer)
{
    const char *line;
    size_t len;

    while (peer_may_read(peer)) {
        if (!rpc_lines_next(&peer->lines, &line, &len))
            return;
        if (len > peer->lines.max)
            rpc_peer_close(peer, RPC_CLOSE_TOO_BIG, "a line is too long");
        else
            peer_message(peer, line, len);
    }
    peer->is.has_leftover = true;
}

void peer_take_lines(struct rpc_peer *peer, const char *bytes, size_t len)
{
    if (!rpc_lines_append(&peer->lines, bytes, len))
        rpc_peer_close(peer, RPC_CLOSE_TOO_BIG, "a line is too long");
    peer_pump_lines(peer);
}

static void peer_read_lines(struct rpc_peer *peer)
{
    char bytes[READ_SIZE];
    ssize_t n = peer_fill(peer, bytes, sizeof bytes);

    if (n > 0) {
        peer_take_lines(peer, bytes, (size_t)n);
    } else if (n != CHANNEL_AGAIN) {
        if (n == 0)
            peer_take_lines(peer, "\n", 1); /* the last line may lack it */
        peer_end(peer);
    }
}

/* --- any stage --- */

static void peer_read_rest(struct rpc_peer *peer)
{
    char bytes[READ_SIZE];
    ssize_t n = peer_fill(peer, bytes, sizeof bytes);

    if (n == 0 || n == CHANNEL_BROKEN)
        peer_break(peer, "closed");
}

void peer_read(struct rpc_peer *peer)
{
    peer->budget = ROUND_BYTES;
    switch (peer->stage) {
    case PEER_HEAD:
        peer_read_head(peer);
        return;
    case PEER_WS:
        peer_read_ws(peer);
        return;
    case PEER_LINES:
        peer_read_lines(peer);
        return;
    case PEER_LINGER:
        peer_read_rest(peer);
        return;
    case PEER_FLUSH:
    case PEER_DEAD:
        return;
    }
}

void peer_read_leftover(struct rpc_peer *peer)
{
    peer->is.has_leftover = false;
    peer->budget = ROUND_BYTES;
    if (peer->stage == PEER_WS)
        peer_read_ws(peer);
    else if (peer->stage == PEER_LINES)
        peer_pump_lines(peer);
    peer_settle(peer);
}
