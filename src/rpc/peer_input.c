/* Bytes in: an HTTP head, frames or lines, messages; and from messages to the owner, or to the call
 * that one answers.
 *
 * A connection begins with a head within limits of size and time, and one reply; then come frames
 * or the end. A Unix socket may speak HTTP as well (its peers are known by their uid); it does so
 * when the first byte is a capital letter, which no JSON text begins with.
 *
 * Reading stops while peer_may_read() says so. What then lies in our own buffers (bytes of frames,
 * or lines that were read with the last ones) is remembered by a flag, because no descriptor gets
 * readable for it.
 *
 * Lines stay where they were read to; what was handed out is dropped when there is no further one,
 * once for all lines of a read. Memory goes back when nothing is left, because most connections are
 * idle and most that are not have had their longest line. */
#include "rpc/peer.h"

#include "base/auto.h"
#include "base/json.h"
#include "base/log.h"
#include "rpc/transport/auth.h"
#include "rpc/transport/http.h"
#include "rpc/transport/listener.h"
#include "rpc/transport/stream.h"
#include "rpc/transport/ws.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum {
    HEAD_S = 10,         /* for all of an HTTP head */
    SILENCE_S = 90,      /* a WebSocket peer that sends and takes nothing for so long is dropped */
    PING_S = 30,         /* between pings, as Codex's server */
    EARLY_SIZE = 4096,   /* bytes of one read(2) for the heads of frames */
    READ_SIZE = 65536,   /* of any other */
    ROUND_BYTES = 65536, /* read from one peer before the others get their turn */
    LINES_KEPT = 4096,   /* bytes of memory for lines that stay */
    METRICS_MAX = 1024 * 1024,
    REPLY_MAX = METRICS_MAX + 4096,
};

/* --- messages --- */

/* Whoever waits for the answer to what cannot be read gets one: a request a refusal by its own id, and
 * of an answer it counts as an error. false: it is neither. */
static bool peer_refuse_by_id(struct rpc_peer *peer, const char *text, size_t len,
                              const struct err *err)
{
    bool is_request;
    AUTO_JSON json_t *id = rpc_message_find_id(text, len, &is_request);
    const struct rpc_message answer = {
        .kind = RPC_ERROR, .id = id, .code = RPC_INVALID_REQUEST, .error_text = err->msg};

    if (!id)
        return false;
    if (!is_request)
        return peer_take_answer(peer, &answer);
    rpc_peer_error(peer, id, RPC_INVALID_PARAMS, "the request cannot be read: %s", err->msg);
    return true;
}

static void peer_refuse_text(struct rpc_peer *peer, const char *text, size_t len,
                             const struct err *err)
{
    peer->hub->stats.parse_errors++;
    if (peer_refuse_by_id(peer, text, len, err))
        return;
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

static void peer_message(void *data, const char *text, size_t len)
{
    struct rpc_peer *peer = data;
    const struct rpc_hub_options *options = &peer->hub->options;
    struct rpc_message message;
    struct err err;

    if (!peer_is_open(peer))
        return;
    peer->hub->stats.messages_in++;
    if ((options->takes_nul ? rpc_message_parse_nul : rpc_message_parse)(text, len, &message,
                                                                         &err)) {
        if (peer->is_server)
            rpc_peer_close(peer, RPC_CLOSE_PROTOCOL, "the server sent what is no message");
        else
            peer_refuse_text(peer, text, len, &err);
        return;
    }
    if (message.kind == RPC_REQUEST || message.kind == RPC_NOTIFICATION)
        options->handlers->on_message(options->data, peer, &message);
    else if (!peer_take_answer(peer, &message))
        rpc_peer_close(peer, RPC_CLOSE_PROTOCOL, "an answer to no request");
    rpc_message_done(&message);
}

/* --- from the stream --- */

static ssize_t peer_fill(struct rpc_peer *peer, void *ret_bytes, size_t len)
{
    ssize_t n = stream_read(peer->stream, ret_bytes, len);

    if (n == 0)
        peer->is_at_end = true;
    if (n <= 0)
        return n;
    peer->hub->stats.bytes_in += (uint64_t)n;
    peer->alive_ns = clock_now_ns();
    return n;
}

static void peer_end(struct rpc_peer *peer)
{
    if (peer->is_at_end)
        peer_leave(peer, "the connection ended");
    else
        peer_break(peer, "the connection broke");
}

/* --- frames --- */

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
    char bytes[EARLY_SIZE]; /* frames are read in small parts: a read(2) for each would be three */
    bool is_direct = len >= EARLY_SIZE / 2;
    ssize_t n;

    if (!peer_may_read(peer)) {
        peer->has_leftover = true;
        return 0;
    }
    if (peer->early.len)
        return peer_take_early(peer, ret_bytes, len);
    if (!peer->budget)
        return 0;
    n = peer_fill(peer, is_direct ? ret_bytes : bytes, is_direct ? len : sizeof bytes);
    if (n == STREAM_AGAIN)
        return 0;
    if (n <= 0)
        return -1;
    peer->budget -= (size_t)n < peer->budget ? (size_t)n : peer->budget;
    if (is_direct)
        return n;
    buf_append(&peer->early, bytes, (size_t)n);
    return peer_take_early(peer, ret_bytes, len);
}

static void peer_on_ws_control(void *data, const void *bytes, size_t len)
{
    peer_put(data, bytes, len);
}

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

void rpc_lines_init(struct rpc_lines *lines, size_t max)
{
    *lines = (struct rpc_lines){.max = max};
    buf_init(&lines->buf, SIZE_MAX / 2);
}

void rpc_lines_done(struct rpc_lines *lines)
{
    buf_done(&lines->buf);
}

bool rpc_lines_append(struct rpc_lines *lines, const char *data, size_t len)
{
    return lines->scanned - lines->at <= lines->max && buf_append(&lines->buf, data, len);
}

static bool is_blank(const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!strchr(" \t\r", line[i]) || !line[i])
            return false;
    return true;
}

bool rpc_lines_next(struct rpc_lines *lines, const char **ret_line, size_t *ret_len)
{
    struct buf *buf = &lines->buf;

    while (buf->len > lines->scanned) {
        const char *line = buf->data + lines->at;
        const char *end = memchr(buf->data + lines->scanned, '\n', buf->len - lines->scanned);

        if (!end)
            break;
        lines->scanned = lines->at = (size_t)(end - buf->data) + 1;
        if (!is_blank(line, (size_t)(end - line))) {
            *ret_line = line;
            *ret_len = (size_t)(end - line);
            return true;
        }
    }
    buf_consume(buf, lines->at);
    lines->scanned = buf->len;
    lines->at = 0;
    if (!buf->len && buf->cap > LINES_KEPT)
        buf_done(buf);
    return false;
}

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
    peer->has_leftover = true;
}

static void peer_take_lines(struct rpc_peer *peer, const char *bytes, size_t len)
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
    } else if (n != STREAM_AGAIN) {
        if (n == 0)
            peer_take_lines(peer, "\n", 1); /* the last line may lack it */
        peer_end(peer);
    }
}

void peer_read_leftover(struct rpc_peer *peer)
{
    peer->has_leftover = false;
    peer->budget = ROUND_BYTES;
    if (peer->stage == PEER_WS)
        peer_read_ws(peer);
    else if (peer->stage == PEER_LINES)
        peer_pump_lines(peer);
    peer_update_interest(peer);
}

/* --- the HTTP head --- */

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
    struct http_reply reply = http_reply_text(status, text);

    peer_reply(peer, &reply);
}

static void peer_begin_ws(struct rpc_peer *peer)
{
    static const struct ws_events events = {
        .on_read = peer_on_ws_read,
        .on_message = peer_message,
        .on_control = peer_on_ws_control,
    };
    uint64_t now = clock_now_ns();

    peer->ws = ws_new(peer->is_server ? WS_CLIENT : WS_SERVER, &events, peer,
                      peer->hub->options.message_max);
    peer->stage = PEER_WS;
    peer->alive_ns = now;
    peer->ping_ns = clock_after(now, PING_S * CLOCK_NS_PER_S);
    hub_due_by(peer->hub, peer->ping_ns);
}

/* Where a token is not to do for any process, its own one decides whether it may come in. false
 * while that is being found out. */
static bool peer_admit(struct rpc_peer *peer, struct http_reply *reply)
{
    const struct rpc_auth *auth = peer->hub->options.auth;

    if (peer->transport != RPC_WS || (auth && !rpc_auth_is_for_own_processes(auth)))
        return true;
    if (peer->admission.state == ADMISSION_UNASKED)
        admission_ask(&peer->hub->admission, &peer->admission, stream_fd(peer->stream));
    if (peer->admission.state == ADMISSION_BLIND)
        *reply = (struct http_reply){.status = 503,
                                     .text = "the server cannot look who this is: it has no "
                                             "descriptors or memory left; try again later",
                                     .is_refusal = true};
    if (peer->admission.state == ADMISSION_REFUSED) {
        log_event(LOG_LEVEL_WARN, "peer-refused", log_text("peer", peer->name));
        *reply = (struct http_reply){
            .status = 403,
            .text = "this server lets in its own user's processes: not commands of Cordon's, nor "
                    "processes that it cannot see; those need --ws-auth capability-token",
            .is_refusal = true,
        };
    }
    return peer->admission.state != ADMISSION_WAITING;
}

/* The address that it came to. Of a Unix socket, and when it is not known, the family is none. */
static struct rpc_address peer_came_to(const struct rpc_peer *peer)
{
    struct rpc_address here = {.transport = RPC_WS};
    socklen_t len = sizeof here.ip;

    if (peer->transport != RPC_WS || getsockname(stream_fd(peer->stream), &here.ip.any, &len))
        here.ip.any.sa_family = AF_UNSPEC;
    return here;
}

/* Called twice for a peer that has to wait for admission, and parsing a head takes it apart. */
static void peer_handle_head(struct rpc_peer *peer, size_t len)
{
    const struct rpc_hub_options *options = &peer->hub->options;
    const struct rpc_address here = peer_came_to(peer);
    char address[RPC_ADDRESS_TEXT_SIZE];
    const struct http_situation situation = {
        .auth = peer->transport == RPC_WS ? options->auth : NULL,
        .address = address,
        .has_metrics = options->handlers->on_metrics != NULL,
        .is_full = hub_is_full(peer->hub),
        .is_loopback = here.ip.any.sa_family != AF_UNSPEC && rpc_address_is_loopback(&here),
    };
    AUTO(buf_done) struct buf text;
    struct http_head head;
    struct http_reply reply;
    struct err err;

    rpc_address_format(&here, address);
    buf_init(&text, HTTP_HEAD_MAX);
    buf_append(&text, peer->early.data, len);
    if (http_head_parse(text.data, len, &head, &err)) {
        peer_reply_error(peer, 400, err.msg);
        return;
    }
    reply = http_reply_to(&head, &situation);
    if ((reply.page == HTTP_PAGE_UPGRADE || reply.page == HTTP_PAGE_METRICS) &&
        !peer_admit(peer, &reply))
        return;
    peer_reply(peer, &reply);
    if (reply.page != HTTP_PAGE_UPGRADE || peer->stage != PEER_HEAD)
        return; /* or the reply could not be written */
    buf_consume(&peer->early, len);
    peer_begin_ws(peer);
    peer_announce(peer);
    if (peer->stage == PEER_WS)
        peer_read_leftover(peer);
}

static void peer_begin_lines(struct rpc_peer *peer)
{
    rpc_lines_init(&peer->lines, peer->hub->options.message_max);
    peer->stage = PEER_LINES;
}

/* A Unix socket whose peer sent something else than HTTP. */
static void peer_turn_to_lines(struct rpc_peer *peer)
{
    AUTO(buf_done) struct buf collected = peer->early;

    buf_init(&peer->early, 0);
    peer_begin_lines(peer);
    if (hub_is_full(peer->hub)) { /* `data` as of the server's other limits (schema/intro.md) */
        AUTO_JSON json_t *data = json_pack("{s:s, s:I}", "reason", "max-connections", "limit",
                                           (json_int_t)peer->hub->options.max_peers);
        const struct rpc_failure failure = {
            .code = RPC_INVALID_REQUEST, .message = "too many connections", .data = data};

        peer->hub->stats.peers_refused++;
        rpc_peer_fail(peer, NULL, &failure);
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
    ssize_t n = stream_read(peer->stream, bytes, room < sizeof bytes ? room : sizeof bytes);

    if (n == 0 || n == STREAM_BROKEN)
        peer_break(peer, "closed");
    if (n <= 0)
        return false;
    if (!peer->early.len && peer->transport == RPC_UNIX && isupper((unsigned char)bytes[0]))
        peer_set_deadline(peer, HEAD_S);
    peer->hub->stats.bytes_in += (uint64_t)n;
    return buf_append(&peer->early, bytes, (size_t)n);
}

static void peer_read_head(struct rpc_peer *peer)
{
    size_t len;

    if (peer->admission.state == ADMISSION_UNASKED && !peer_append_head(peer))
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

/* --- any stage --- */

static void peer_read_rest(struct rpc_peer *peer)
{
    char bytes[READ_SIZE];
    ssize_t n = peer_fill(peer, bytes, sizeof bytes);

    if (n == 0 || n == STREAM_BROKEN)
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

/* Connections may come by the hundred, and open ones go first: a head waits for hub.c. */
static void peer_wait(void *data)
{
    struct rpc_peer *peer = data;

    peer->is_waiting = true;
    hub_defer(peer->hub);
}

static void peer_ready(void *data, unsigned ready)
{
    struct rpc_peer *peer = data;

    if (ready & LOOP_WRITE)
        peer_write(peer);
    if (ready & LOOP_READ && peer->stage == PEER_HEAD)
        peer_wait(peer);
    else if (ready & LOOP_READ)
        peer_read(peer);
    peer_update_interest(peer);
}

void peer_start_head(struct rpc_peer *peer)
{
    peer->admission.on_decided = peer_wait;
    peer->admission.data = peer;
    stream_set_callback(peer->stream, peer_ready, peer);
    if (peer->transport == RPC_WS)
        peer_set_deadline(peer, HEAD_S);
    peer_update_interest(peer);
}

void peer_start_open(struct rpc_peer *peer)
{
    stream_set_callback(peer->stream, peer_ready, peer);
    if (peer->transport == RPC_WS)
        peer_begin_ws(peer);
    else
        peer_begin_lines(peer);
    hub_defer(peer->hub);
}

/* --- time --- */

/* From a peer that is not read nothing can be heard. */
static uint64_t peer_silence_ns(const struct rpc_peer *peer)
{
    if (peer->is_paused)
        return UINT64_MAX;
    return clock_after(peer->alive_ns, SILENCE_S * CLOCK_NS_PER_S);
}

void peer_tick(struct rpc_peer *peer, uint64_t now_ns)
{
    if (!peer_is_open(peer)) {
        if (peer->deadline_ns > now_ns || peer->stage == PEER_DEAD)
            return;
        if (peer->stage == PEER_HEAD)
            peer_reply_error(peer, 408, "the request took too long");
        else
            peer_break(peer, "too slow");
        return;
    }
    peer_expire_calls(peer, now_ns);
    if (peer->stage != PEER_WS)
        return;
    if (peer_silence_ns(peer) <= now_ns)
        peer_break(peer, "silent for too long");
    if (peer->stage != PEER_WS || peer->ping_ns > now_ns)
        return;
    peer->ping_ns = clock_after(now_ns, PING_S * CLOCK_NS_PER_S);
    if (!peer->outbox.len) /* behind other bytes it would say nothing: those have to be taken */
        ws_ping(peer->ws);
}

uint64_t peer_due_ns(const struct rpc_peer *peer)
{
    uint64_t due = peer_calls_due_ns(peer);

    if (peer->stage == PEER_DEAD)
        return UINT64_MAX;
    if (!peer_is_open(peer))
        return peer->deadline_ns;
    if (peer->stage == PEER_WS && peer->ping_ns < due)
        due = peer->ping_ns;
    if (peer->stage == PEER_WS && peer_silence_ns(peer) < due)
        due = peer_silence_ns(peer);
    return due;
}
