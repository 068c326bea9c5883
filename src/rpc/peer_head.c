/* The HTTP part of a connection's life: a head within limits of size and time, one reply, and then
 * frames or the end. A Unix socket may speak HTTP as well (its peers are known by their uid); it
 * does so when the first byte is a capital letter, which no JSON text begins with. */
#include "rpc/parts.h"

#include "base/auto.h"
#include "base/json.h"
#include "base/log.h"
#include "rpc/text.h"
#include "rpc/transport/http_reply.h"

#include <ctype.h>
#include <string.h>

enum { METRICS_MAX = 1024 * 1024, REPLY_MAX = METRICS_MAX + 4096 };

void peer_expect_head(struct rpc_peer *peer)
{
    peer_set_deadline(peer, HEAD_S);
}

static void peer_reply(struct rpc_peer *peer, const struct http_reply *reply)
{
    const struct rpc_hub_options *options = &peer->hub->options;
    AUTO(buf_done) struct buf body;
    AUTO(buf_done) struct buf text;

    buf_init(&body, METRICS_MAX);
    buf_init(&text, REPLY_MAX);
    if (reply->page == HTTP_PAGE_METRICS)
        options->handlers->on_metrics(options->data, &body);
    if (reply->is_refusal)
        peer->hub->stats.peers_refused++;
    http_reply_write(reply, &body, &text);
    peer_put(peer, text.data, text.len);
    if (reply->page != HTTP_PAGE_UPGRADE)
        peer_leave(peer, "answered");
}

static void peer_reply_error(struct rpc_peer *peer, int status, const char *text)
{
    struct http_reply reply = http_reply_error(status, text);

    peer_reply(peer, &reply);
}

void peer_answer_late(struct rpc_peer *peer)
{
    peer_reply_error(peer, 408, "the request took too long");
}

/* `len` bytes of what was collected are the head. */
static void peer_upgrade(struct rpc_peer *peer, size_t len)
{
    if (peer->stage != PEER_HEAD)
        return; /* the reply could not be written */
    buf_consume(&peer->early, len);
    peer_start_ws(peer);
    peer_announce(peer);
    if (peer->stage == PEER_WS)
        peer_read_leftover(peer);
}

static struct http_reply peer_refusal(const struct rpc_peer *peer)
{
    log_event(LOG_LEVEL_WARN, "peer-refused", log_text("peer", peer->name));
    return (struct http_reply){
        .status = 403,
        .text = "without a token this server lets in its own user's processes and root's: not "
                "commands of Cordon's, nor processes that it cannot see (see --ws-auth)",
        .is_refusal = true,
    };
}

/* Whether somebody else than a token says if it may come in. */
static bool peer_stands_at_door(struct rpc_peer *peer)
{
    if (peer->transport != RPC_WS || peer->hub->options.auth)
        return false;
    if (peer->door.state == DOOR_UNASKED)
        door_ask(&peer->hub->door, peer);
    return true;
}

/* Twice for those who have to wait at the door, and parsing a head takes it apart. */
static void peer_handle_head(struct rpc_peer *peer, size_t len)
{
    const struct rpc_hub_options *options = &peer->hub->options;
    const struct http_situation situation = {
        .auth = peer->transport == RPC_WS ? options->auth : NULL,
        .has_metrics = options->handlers->on_metrics != NULL,
        .is_full = hub_is_full(peer->hub),
    };
    AUTO(buf_done) struct buf text;
    struct http_head head;
    struct http_reply reply;
    struct err err;

    buf_init(&text, HTTP_HEAD_MAX);
    buf_append(&text, peer->early.data, len);
    if (http_head_parse(text.data, len, &head, &err)) {
        peer_reply_error(peer, 400, err.msg);
        return;
    }
    reply = http_reply_to(&head, &situation);
    if (reply.page == HTTP_PAGE_UPGRADE && peer_stands_at_door(peer)) {
        if (peer->door.state == DOOR_WAITS)
            return;
        if (peer->door.state == DOOR_SHUT)
            reply = peer_refusal(peer);
    }
    peer_reply(peer, &reply);
    if (reply.page == HTTP_PAGE_UPGRADE)
        peer_upgrade(peer, len);
}

/* `data` as of the server's other limits (schema/intro.md). */
static void refuse_full(struct rpc_peer *peer)
{
    AUTO_JSON json_t *data = json_pack("{s:s, s:I}", "reason", "max-connections", "limit",
                                       (json_int_t)peer->hub->options.max_peers);
    const struct rpc_failure failure = {
        .code = RPC_INVALID_REQUEST, .message = "too many connections", .data = data};

    rpc_peer_fail(peer, NULL, &failure);
}

/* A Unix socket whose peer sent something else than HTTP. */
static void peer_turn_to_lines(struct rpc_peer *peer)
{
    AUTO(buf_done) struct buf collected = peer->early;

    buf_init(&peer->early, 0);
    peer_start_lines(peer);
    if (hub_is_full(peer->hub)) {
        peer->hub->stats.peers_refused++;
        refuse_full(peer);
        peer_leave(peer, "refused");
        return;
    }
    peer_announce(peer);
    peer_take_lines(peer, collected.data, collected.len);
}

static bool peer_append_head(struct rpc_peer *peer)
{
    char bytes[4096];
    size_t room = HTTP_HEAD_MAX - peer->early.len;
    ssize_t n = channel_read(peer->channel, bytes, room < sizeof bytes ? room : sizeof bytes);

    if (n == 0 || n == CHANNEL_BROKEN)
        peer_break(peer, "closed");
    if (n <= 0)
        return false;
    if (!peer->early.len && peer->transport == RPC_UNIX && isupper((unsigned char)bytes[0]))
        peer_expect_head(peer);
    peer->hub->stats.bytes_in += (uint64_t)n;
    return buf_append(&peer->early, bytes, (size_t)n);
}

void peer_read_head(struct rpc_peer *peer)
{
    size_t len;

    if (peer->door.state == DOOR_UNASKED && !peer_append_head(peer))
        return;
    if (peer->transport == RPC_UNIX && !isupper((unsigned char)peer->early.data[0])) {
        peer_turn_to_lines(peer);
        return;
    }
    len = http_head_len(peer->early.data, peer->early.len);
    if (len)
        peer_handle_head(peer, len);
    else if (peer->early.len == HTTP_HEAD_MAX)
        peer_reply_error(peer, 431, "the head is too large");
}
