/* Listening: sockets of our own, sockets that systemd made, and stdio, which is a peer without a
 * listener. A round accepts a bounded number, so that a storm of connections does not hold up those
 * that are there; and when descriptors run out, none for a second, because a listening socket stays
 * readable and would be tried again without end. */
#include "rpc/parts.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "loop/loop.h"
#include "rpc/transport/ancestry.h"
#include "rpc/transport/auth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ACCEPTS_PER_ROUND = 2, PAUSE_S = 1 };

static void name_ip(const struct rpc_address *address, char ret[NAME_SIZE])
{
    char url[RPC_ADDRESS_TEXT_SIZE];

    rpc_address_format(address, url);
    snprintf(ret, NAME_SIZE, "%.79s", url + strlen("ws://"));
}

/* Whoever is on the other end of a Unix socket has to be who we are, or root, which could be; but
 * no command, which could leave its sandbox by starting another one. (A peer of another pid
 * namespace has the number 0.) What holds for WebSockets: door.c. */
static bool check_uid(struct rpc_hub *hub, int fd, char ret_name[NAME_SIZE])
{
    struct ucred peer;
    socklen_t len = sizeof peer;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
        (peer.uid == geteuid() || peer.uid == 0) && !ancestry_is_command(peer.pid)) {
        snprintf(ret_name, NAME_SIZE, "unix:uid=%u,pid=%d", peer.uid, peer.pid);
        return true;
    }
    hub->stats.peers_refused++;
    return false;
}

/* Takes the descriptor. */
static void listener_admit(struct rpc_listener *listener, int socket,
                           const struct rpc_address *from)
{
    AUTO_CLOSE int fd = socket;
    const int on = 1;
    enum rpc_transport transport = listener->address.transport;
    char name[NAME_SIZE];
    struct channel *channel;
    struct rpc_peer *peer;
    struct err err;

    if (transport == RPC_WS) {
        name_ip(from, name);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    } else if (!check_uid(listener->hub, fd, name)) {
        return;
    }
    hub_make_place(listener->hub);
    channel = channel_new(listener->hub->loop, fd, fd, &err);
    fd = -1;
    if (!channel) {
        log_event(LOG_LEVEL_WARN, "connection-failed", log_text("why", err.msg));
        return;
    }
    peer = peer_new(listener->hub, channel, transport);
    snprintf(peer->name, sizeof peer->name, "%s", name);
    if (transport == RPC_WS)
        peer_expect_head(peer);
    peer_settle(peer);
}

static void listener_pause(struct rpc_listener *listener)
{
    log_event(LOG_LEVEL_WARN, "accept-failed", log_text("why", strerror(errno)));
    loop_watch_set(listener->watch, LOOP_NOTHING);
    listener->resume_ns = clock_after(clock_now_ns(), PAUSE_S * CLOCK_NS_PER_S);
    hub_due_by(listener->hub, listener->resume_ns);
}

static void listener_ready(void *data, int fd, unsigned ready)
{
    struct rpc_listener *listener = data;

    for (int i = 0; i < ACCEPTS_PER_ROUND; i++) {
        struct rpc_address from = {.transport = RPC_WS};
        socklen_t len = sizeof from.ip;
        int peer = accept4(fd, &from.ip.any, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (peer >= 0) {
            listener_admit(listener, peer, &from);
            continue;
        }
        if (errno == EAGAIN)
            return;
        if (errno != ECONNABORTED && errno != EINTR) {
            listener_pause(listener);
            return;
        }
    }
}

void listener_tick(struct rpc_listener *listener, uint64_t now_ns)
{
    if (!listener->resume_ns)
        return;
    if (listener->resume_ns > now_ns) {
        hub_due_by(listener->hub, listener->resume_ns);
        return;
    }
    listener->resume_ns = 0;
    loop_watch_set(listener->watch, LOOP_READ);
}

void listener_free(struct rpc_listener *listener)
{
    loop_watch_free(listener->watch);
    if (listener->fd >= 0)
        close(listener->fd);
    socket_file_remove(&listener->file);
    free(listener);
}

static void listener_auto(struct rpc_listener **listener)
{
    if (*listener)
        listener_free(*listener);
}

static struct rpc_listener *listener_new(struct rpc_hub *hub, const struct rpc_address *address)
{
    struct rpc_listener *listener = alloc_zero(1, sizeof *listener);

    *listener = (struct rpc_listener){.hub = hub, .fd = -1, .address = *address};
    rpc_address_format(address, listener->url);
    return listener;
}

static struct rpc_listener *listener_link(struct rpc_listener *listener)
{
    listener->next = listener->hub->listeners;
    listener->hub->listeners = listener;
    return listener;
}

/* A peer that speaks lines on descriptors 0 and 1. They are replaced by /dev/null, so that nothing
 * else that reads or prints gets between the messages. */
static int attach_stdio(struct rpc_hub *hub, struct err *err)
{
    AUTO_CLOSE int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    AUTO_CLOSE int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    AUTO_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (in < 0 || out < 0)
        return err_sys(err, "stdio: descriptors 0 and 1 have to be open");
    /* allow dup2: descriptors 0 and 1 are meant to reach children, who get nothing here */
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
        return err_sys(err, "stdio: /dev/null");
    return rpc_hub_attach(hub, TAKE_FD(in), TAKE_FD(out), err) ? 0 : -1;
}

static int check_exposure(const struct rpc_hub *hub, const struct rpc_address *address,
                          struct err *err)
{
    char url[RPC_ADDRESS_TEXT_SIZE];

    rpc_address_format(address, url);
    if (!rpc_address_is_loopback(address) &&
        (!hub->options.auth || rpc_auth_is_open(hub->options.auth)))
        return err_set(err, ERR_FORBIDDEN,
                       "%s can be reached from other hosts: --ws-auth with a token is needed, or a "
                       "loopback address",
                       url);
    return 0;
}

/* `fd` listens already and becomes the listener's. */
static int listener_start(struct rpc_listener *listener, int fd, struct err *err)
{
    listener->fd = fd;
    if (bind_identify(fd, &listener->address, err))
        return -1;
    rpc_address_format(&listener->address, listener->url);
    listener->watch =
        loop_watch_new(listener->hub->loop, fd, LOOP_READ, listener_ready, listener, err);
    return listener->watch ? 0 : -1;
}

struct rpc_listener *rpc_hub_listen(struct rpc_hub *hub, const struct rpc_address *address,
                                    struct err *err)
{
    AUTO(listener_auto) struct rpc_listener *listener = listener_new(hub, address);
    int fd;

    if (address->transport == RPC_STDIO) {
        if (attach_stdio(hub, err))
            return NULL;
        return listener_link(TAKE_PTR(listener));
    }
    if (check_exposure(hub, address, err))
        return NULL;
    fd = bind_open(address, &listener->file, err);
    if (fd < 0 || listener_start(listener, fd, err))
        return NULL;
    return listener_link(TAKE_PTR(listener));
}

struct rpc_listener *rpc_hub_adopt(struct rpc_hub *hub, int fd, struct err *err)
{
    AUTO_CLOSE int socket = fd;
    struct rpc_address address;
    AUTO(listener_auto) struct rpc_listener *listener = NULL;

    if (bind_identify(fd, &address, err) || check_exposure(hub, &address, err) ||
        fd_set_nonblocking(fd, true, err))
        return NULL;
    if (fcntl(fd, F_SETFD, FD_CLOEXEC)) {
        err_sys(err, "socket %d", fd);
        return NULL;
    }
    listener = listener_new(hub, &address);
    if (listener_start(listener, TAKE_FD(socket), err))
        return NULL;
    return listener_link(TAKE_PTR(listener));
}

const char *rpc_listener_url(const struct rpc_listener *listener)
{
    return listener->url;
}
