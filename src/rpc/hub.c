/* All connections of a server. Two timers: one for the earliest deadline of anything, set anew by
 * going through everything (there are hundreds of peers, not millions), and one that fires in the
 * next round, for what must not happen inside a call of the owner: notifying it of peers that came
 * or left, reading on after a pause, freeing.
 *
 * To connect, poll(2) waits instead of the loop, because the caller has nothing else to do before
 * there is a connection. Bytes behind the server's handshake are kept for the first reader. */
#include "rpc/peer.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/log.h"
#include "rpc/transport/auth.h"
#include "rpc/transport/http.h"
#include "rpc/transport/listener.h"
#include "rpc/transport/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    ROUND_HEADS = 1, /* HTTP heads that are answered before open peers get their turn */
    CONNECT_S = 10,  /* as Codex's client */
};

/* --- rounds --- */

static void hub_on_timer(void *data)
{
    rpc_hub_tick(data);
}

/* Lets a peer that waits have its head read, if this round has time for it; tells the owner what it
 * has to know of this peer. */
static void hub_notify(struct rpc_hub *hub, struct rpc_peer *peer)
{
    if (peer->is_waiting && !hub->heads) {
        hub_defer(hub);
    } else if (peer->is_waiting) {
        peer->is_waiting = false;
        hub->heads--;
        peer_read(peer);
        peer_update_interest(peer);
    }
    if (peer_is_open(peer) && !peer->is_announced) {
        peer_announce(peer);
        peer_update_interest(peer);
    }
    if (peer->has_leftover && peer_may_read(peer))
        peer_read_leftover(peer);
    if (!peer_is_open(peer) && peer->is_announced && !peer->is_departed) {
        peer->is_departed = true;
        hub->stats.peers_open--;
        peer_fail_calls(peer);
        hub->options.handlers->on_closed(hub->options.data, peer, peer->why);
    }
}

static void hub_on_deferred(void *data)
{
    struct rpc_hub *hub = data;
    struct rpc_peer *peer = list_first(&hub->peers, struct rpc_peer, in_hub);

    hub->heads = ROUND_HEADS;
    while (peer) { /* callbacks may add peers, behind the last */
        struct rpc_peer *next;

        hub_notify(hub, peer);
        next = list_item(list_after(&hub->peers, &peer->in_hub), struct rpc_peer, in_hub);
        if (peer->stage == PEER_DEAD && peer->is_announced == peer->is_departed)
            peer_free(peer);
        peer = next;
    }
    if (!hub->is_shut || hub->is_idle || !list_is_empty(&hub->peers))
        return;
    hub->is_idle = true;
    if (hub->options.handlers->on_idle)
        hub->options.handlers->on_idle(hub->options.data);
}

void rpc_hub_tick(struct rpc_hub *hub)
{
    uint64_t now = clock_now_ns();
    struct rpc_peer *peer;

    hub->due_ns = UINT64_MAX;
    loop_timer_stop(hub->timer);
    for (size_t i = 0; i < hub->listener_count; i++)
        hub_due_by(hub, listener_tick(hub->listeners[i], now));
    list_for_each(peer, &hub->peers, in_hub) {
        peer_tick(peer, now);
        hub_due_by(hub, peer_due_ns(peer));
    }
}

/* --- the hub --- */

struct rpc_hub *rpc_hub_new(struct loop *loop, const struct rpc_hub_options *options)
{
    struct rpc_hub *hub = alloc_zero(1, sizeof *hub);

    *hub = (struct rpc_hub){.loop = loop, .options = *options, .due_ns = UINT64_MAX};
    hub->options.max_peers = options->max_peers ?: 256;
    hub->options.message_max = options->message_max ?: (size_t)64 * 1024 * 1024;
    hub->options.queue_high = options->queue_high ?: (size_t)1024 * 1024;
    hub->options.queue_low = options->queue_low ?: (size_t)256 * 1024;
    hub->options.queue_stop = options->queue_stop ?: (size_t)4 * 1024 * 1024;
    hub->timer = loop_timer_new(loop, hub_on_timer, hub);
    hub->deferred = loop_timer_new(loop, hub_on_deferred, hub);
    admission_init(&hub->admission, loop);
    return hub;
}

static void hub_stop_listening(struct rpc_hub *hub)
{
    for (size_t i = 0; i < hub->listener_count; i++)
        listener_free(hub->listeners[i]);
    hub->listener_count = 0;
}

void rpc_hub_free(struct rpc_hub *hub)
{
    struct rpc_peer *peer;
    struct rpc_peer *following;

    if (!hub)
        return;
    hub_stop_listening(hub);
    free(hub->listeners);
    list_for_each_safe(peer, following, &hub->peers, in_hub)
        peer_free(peer);
    admission_done(&hub->admission);
    loop_timer_free(hub->timer);
    loop_timer_free(hub->deferred);
    free(hub);
}

void rpc_hub_shutdown(struct rpc_hub *hub, enum rpc_close_code code, const char *reason)
{
    struct rpc_peer *peer;

    hub->is_shut = true;
    hub_stop_listening(hub);
    list_for_each(peer, &hub->peers, in_hub) {
        rpc_peer_close(peer, code, reason);
        if (peer->stage == PEER_HEAD)
            peer_break(peer, "shutting down");
    }
    hub_defer(hub);
}

void rpc_hub_stats(const struct rpc_hub *hub, struct rpc_stats *ret)
{
    const struct rpc_peer *peer;

    *ret = hub->stats;
    list_for_each(peer, &hub->peers, in_hub)
        ret->bytes_queued += peer->outbox.len;
}

/* --- connections that come --- */

static bool is_in_admission(const struct rpc_peer *peer)
{
    return peer->stage == PEER_HEAD && peer->admission.state != ADMISSION_UNASKED;
}

/* Connections that are not open (in the handshake, or being closed) may be as many as open ones.
 * Beyond that the one that is at it for the longest has to go, and first of all one that does not
 * wait for us: a peer that comes with a request ready is through in a few rounds of the loop. */
static void hub_make_room(struct rpc_hub *hub)
{
    struct rpc_peer *oldest = NULL;
    struct rpc_peer *peer;
    unsigned count = 0;

    list_for_each(peer, &hub->peers, in_hub) {
        if (peer_is_open(peer) || peer->stage == PEER_DEAD)
            continue;
        if (!oldest || (is_in_admission(oldest) && !is_in_admission(peer)))
            oldest = peer;
        count++;
    }
    if (count >= hub->options.max_peers)
        peer_break(oldest, "too many connections");
}

static void hub_on_accept(void *data, int socket, const struct rpc_address *from)
{
    struct rpc_hub *hub = data;
    AUTO_CLOSE int fd = socket;
    const int on = 1;
    char name[RPC_ADDRESS_TEXT_SIZE];
    struct stream *stream;
    struct err err;

    if (from->transport == RPC_WS) {
        rpc_address_format(from, name);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    } else if (!admission_allows_unix(fd, name, sizeof name)) {
        hub->stats.peers_refused++;
        return;
    }
    hub_make_room(hub);
    stream = stream_new(hub->loop, fd, fd, &err);
    fd = -1;
    if (!stream) {
        log_event(LOG_LEVEL_WARN, "connection-failed", log_text("why", err.msg));
        return;
    }
    peer_start_head(peer_new(hub, stream, from->transport,
                             from->transport == RPC_WS ? name + strlen("ws://") : name));
}

static void hub_on_pause(void *data, uint64_t until_ns)
{
    hub_due_by(data, until_ns);
}

static struct rpc_listener *hub_add_listener(struct rpc_hub *hub, struct rpc_listener *listener)
{
    hub->listeners =
        alloc_grow(hub->listeners, hub->listener_count, &hub->listener_cap, sizeof listener);
    hub->listeners[hub->listener_count++] = listener;
    return listener;
}

/* A peer that speaks lines on descriptors 0 and 1. */
static int attach_stdio(struct rpc_hub *hub, struct err *err)
{
    int in;
    int out;

    return !stream_take_stdio(&in, &out, err) && rpc_hub_attach(hub, in, out, err) ? 0 : -1;
}

static int check_exposure(const struct rpc_hub *hub, const struct rpc_address *address,
                          struct err *err)
{
    char url[RPC_ADDRESS_TEXT_SIZE];

    rpc_address_format(address, url);
    if (!rpc_address_is_loopback(address) &&
        (!hub->options.auth || rpc_auth_is_open(hub->options.auth) ||
         rpc_auth_is_for_own_processes(hub->options.auth)))
        return err_set(err, ERR_FORBIDDEN,
                       "%s can be reached from other hosts: --ws-auth capability-token or "
                       "signed-bearer-token is needed, or a loopback address",
                       url);
    return 0;
}

static void listener_auto(struct rpc_listener **listener)
{
    listener_free(*listener);
}

static const struct listener_events listener_events = {hub_on_accept, hub_on_pause};

struct rpc_listener *rpc_hub_listen(struct rpc_hub *hub, const struct rpc_address *address,
                                    struct err *err)
{
    AUTO(listener_auto)
    struct rpc_listener *listener = listener_new(address, &listener_events, hub);
    int failed = address->transport == RPC_STDIO ? attach_stdio(hub, err)
                                                 : check_exposure(hub, address, err) ||
                                                       listener_start(listener, hub->loop, -1, err);

    return failed ? NULL : hub_add_listener(hub, TAKE_PTR(listener));
}

struct rpc_listener *rpc_hub_adopt(struct rpc_hub *hub, int fd, struct err *err)
{
    AUTO_CLOSE int socket = fd;
    AUTO(listener_auto) struct rpc_listener *listener = NULL;
    struct rpc_address address;

    if (listener_identify(fd, &address, err) || check_exposure(hub, &address, err) ||
        fd_set_nonblocking(fd, true, err))
        return NULL;
    if (fcntl(fd, F_SETFD, FD_CLOEXEC)) {
        err_sys(err, "socket %d", fd);
        return NULL;
    }
    listener = listener_new(&address, &listener_events, hub);
    if (listener_start(listener, hub->loop, TAKE_FD(socket), err))
        return NULL;
    return hub_add_listener(hub, TAKE_PTR(listener));
}

/* --- connections of our own --- */

struct rpc_peer *rpc_hub_attach(struct rpc_hub *hub, int in, int out, struct err *err)
{
    struct stream *stream = stream_new(hub->loop, in, out, err);
    bool is_pair = in == out;
    struct rpc_peer *peer;

    if (!stream)
        return NULL;
    peer = peer_new(hub, stream, is_pair ? RPC_UNIX : RPC_STDIO, is_pair ? "attached" : "stdio");
    peer_start_open(peer);
    return peer;
}

struct attempt {
    int fd; /* non-blocking */
    uint64_t deadline_ns;
};

/* Waits for these events of poll(2). */
static int attempt_wait(const struct attempt *attempt, short events, struct err *err)
{
    struct pollfd item = {.fd = attempt->fd, .events = events};

    for (;;) {
        uint64_t now = clock_now_ns();
        uint64_t left = attempt->deadline_ns > now ? attempt->deadline_ns - now : 0;
        int n = poll(&item, 1, (int)(left / CLOCK_NS_PER_MS));

        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return err_sys(err, "waiting for the server");
        if (n == 0) {
            errno = ETIMEDOUT;
            return err_sys(err, "no answer");
        }
    }
}

static int attempt_connect(const struct attempt *attempt, const struct rpc_address *address,
                           struct err *err)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    bool is_ip = address->transport == RPC_WS;
    const struct sockaddr *name = is_ip ? &address->ip.any : (struct sockaddr *)&local;
    int failure = 0;
    socklen_t len = sizeof failure;

    snprintf(local.sun_path, sizeof local.sun_path, "%.*s", (int)sizeof local.sun_path - 1,
             address->path);
    if (connect(attempt->fd, name, is_ip ? rpc_address_ip_len(address) : sizeof local) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return err_sys(err, "no connection");
    if (attempt_wait(attempt, POLLOUT, err))
        return -1;
    if (getsockopt(attempt->fd, SOL_SOCKET, SO_ERROR, &failure, &len))
        return err_sys(err, "no connection");
    errno = failure;
    return failure ? err_sys(err, "no connection") : 0;
}

static int attempt_send(const struct attempt *attempt, const struct buf *text, struct err *err)
{
    size_t done = 0;

    while (done < text->len) {
        ssize_t n = send(attempt->fd, text->data + done, text->len - done, MSG_NOSIGNAL);

        if (n > 0)
            done += (size_t)n;
        else if (errno != EAGAIN && errno != EINTR)
            return err_sys(err, "sending the handshake");
        else if (attempt_wait(attempt, POLLOUT, err))
            return -1;
    }
    return 0;
}

/* Reads until a whole head is there; what follows it may be there as well. */
static int attempt_read_head(const struct attempt *attempt, struct buf *ret, struct err *err)
{
    while (!http_head_len(ret->data ? ret->data : "", ret->len)) {
        char bytes[4096];
        size_t room = ret->max - ret->len;
        ssize_t n;

        if (!room)
            return err_set(err, ERR_INVALID, "this is no exec server: its HTTP head is too long");
        n = recv(attempt->fd, bytes, room < sizeof bytes ? room : sizeof bytes, 0);
        if (n > 0)
            buf_append(ret, bytes, (size_t)n);
        else if (n == 0)
            return err_set(err, ERR_INVALID, "the server ended the connection in the handshake");
        else if (errno != EAGAIN && errno != EINTR)
            return err_sys(err, "reading the handshake");
        else if (attempt_wait(attempt, POLLIN, err))
            return -1;
    }
    return 0;
}

/* `ret` is left with what came behind the server's head. */
static int attempt_upgrade(const struct attempt *attempt, const struct rpc_target *target,
                           struct buf *ret, struct err *err)
{
    const struct handshake_secret secret = {.token = target->token,
                                            .user_token = target->user_token};
    const int on = 1;
    char url[RPC_ADDRESS_TEXT_SIZE];
    char key[HANDSHAKE_KEY_SIZE];
    AUTO(buf_done) struct buf request;
    size_t len;

    buf_init(&request, HTTP_HEAD_MAX);
    rpc_address_format(&target->address, url);
    handshake_key(key);
    handshake_request(url, key, &secret, &request);
    setsockopt(attempt->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (attempt_send(attempt, &request, err) || attempt_read_head(attempt, ret, err))
        return -1;
    len = http_head_len(ret->data, ret->len);
    if (handshake_check(ret->data, len, key, &secret, err))
        return -1;
    buf_consume(ret, len);
    return 0;
}

/* A connected socket that does not block; of RPC_WS the handshake is done, and `ret_early` has what
 * came behind it. */
static int connect_to(const struct rpc_target *target, struct buf *ret_early, struct err *err)
{
    const struct rpc_address *address = &target->address;
    const char *token = target->token;
    int family = address->transport == RPC_WS ? address->ip.any.sa_family : AF_UNIX;
    struct attempt attempt;
    AUTO_CLOSE int fd = -1;

    if (address->transport == RPC_STDIO)
        return err_set(err, ERR_INVALID, "one can connect to ws://IP:PORT and unix:PATH only");
    if (token && !handshake_token_is_valid(token))
        return err_set(err, ERR_INVALID,
                       "the token is empty, too long, or has characters that do not belong there");
    fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(err, "making a socket");
    attempt = (struct attempt){
        .fd = fd, .deadline_ns = clock_after(clock_now_ns(), CONNECT_S * CLOCK_NS_PER_S)};
    if (attempt_connect(&attempt, address, err) ||
        (address->transport == RPC_WS && attempt_upgrade(&attempt, target, ret_early, err)))
        return -1;
    return TAKE_FD(fd);
}

struct rpc_peer *rpc_hub_connect(struct rpc_hub *hub, const struct rpc_target *target,
                                 struct err *err)
{
    AUTO(buf_done) struct buf early;
    char name[RPC_ADDRESS_TEXT_SIZE];
    struct stream *stream;
    struct rpc_peer *peer;
    int fd;

    buf_init(&early, HTTP_HEAD_MAX);
    fd = connect_to(target, &early, err);
    stream = fd < 0 ? NULL : stream_new(hub->loop, fd, fd, err);
    if (!stream)
        return NULL;
    rpc_address_format(&target->address, name);
    peer = peer_new(hub, stream, target->address.transport, name);
    peer->is_server = true;
    if (early.len) {
        buf_append(&peer->early, early.data, early.len);
        peer->has_leftover = true;
    }
    peer_start_open(peer);
    return peer;
}
