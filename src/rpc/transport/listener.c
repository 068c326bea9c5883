/* Listening sockets: our own, and those that systemd made. A round accepts a bounded number, so
 * that a storm of connections does not hold up the clients that are connected; and when descriptors
 * run out, none for a second, because a listening socket stays readable and would be tried again
 * without end.
 *
 * A socket file outlives a server that was killed, and bind(2) then fails for ever. It is replaced
 * when it is ours and no process listens behind it. That is a check and then an act, so all of it,
 * up to listen(2), happens under a lock on the directory: otherwise a second server could take the
 * first one's file for a dead one in the moment between bind and listen. The mode is set on the
 * socket before it has a name (Linux gives it to the file), so there is no moment in which other
 * users could connect.
 *
 * Host names are refused in addresses on purpose: which of a name's addresses is listened on, and
 * whether that is loopback, should not depend on a resolver. */
#include "rpc/transport/listener.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/str.h"
#include "loop/loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* --- addresses --- */

static int address_fail(const char *text, enum rpc_transport transport, struct err *err)
{
    if (transport == RPC_HTTP)
        return err_set(err, ERR_INVALID,
                       "invalid address \"%.80s\": should be http://IP:PORT, as in "
                       "http://127.0.0.1:0 or http://[::1]:8080",
                       text);
    return err_set(err, ERR_INVALID,
                   "invalid websocket address \"%.80s\": should be ws://IP:PORT, as in "
                   "ws://127.0.0.1:0 or ws://[::1]:8080",
                   text);
}

/* 1 to 5 digits up to 65535, or -1. */
static int port_parse(const char *text)
{
    int port = 0;

    if (!*text || strlen(text) > 5 || text[strspn(text, "0123456789")])
        return -1;
    for (; *text; text++)
        port = port * 10 + (*text - '0');
    return port <= 65535 ? port : -1;
}

/* `host` without brackets. */
static bool ip_parse(const char *host, int port, bool is_v6, struct rpc_address *ret)
{
    in_port_t net_port = htons((uint16_t)port);

    if (is_v6) {
        ret->ip.v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = net_port};
        return inet_pton(AF_INET6, host, &ret->ip.v6.sin6_addr) == 1;
    }
    ret->ip.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = net_port};
    return inet_pton(AF_INET, host, &ret->ip.v4.sin_addr) == 1;
}

/* `rest` is what follows the scheme; "ws" and "http" have the same. The transport is said already. */
static int address_parse_ip(const char *text, const char *rest, struct rpc_address *ret,
                            struct err *err)
{
    char host[INET6_ADDRSTRLEN];
    const char *colon = strrchr(rest, ':');
    bool is_v6 = *rest == '[';
    size_t len;
    int port;

    if (!colon)
        return address_fail(text, ret->transport, err);
    port = port_parse(colon + 1);
    len = (size_t)(colon - rest);
    if (is_v6) {
        if (len < 2 || rest[len - 1] != ']')
            return address_fail(text, ret->transport, err);
        rest++;
        len -= 2;
    }
    if (port < 0 || len >= sizeof host)
        return address_fail(text, ret->transport, err);
    memcpy(host, rest, len);
    host[len] = '\0';
    if (!ip_parse(host, port, is_v6, ret))
        return address_fail(text, ret->transport, err);
    return 0;
}

static int address_parse_unix(const char *path, struct rpc_address *ret, struct err *err)
{
    const size_t max = sizeof((struct sockaddr_un *)0)->sun_path;

    if (!*path)
        return err_set(err, ERR_INVALID, "\"unix:\" lacks the path of the socket");
    if (strlen(path) >= max)
        return err_set(err, ERR_INVALID, "the path of a Unix socket has at most %zu bytes, not %zu",
                       max - 1, strlen(path));
    snprintf(ret->path, sizeof ret->path, "%s", path);
    return 0;
}

int rpc_address_parse(const char *text, struct rpc_address *ret, struct err *err)
{
    struct rpc_address address = {.transport = RPC_STDIO};

    if (str_starts(text, "ws://")) {
        address.transport = RPC_WS;
        if (address_parse_ip(text, text + strlen("ws://"), &address, err))
            return -1;
    } else if (str_starts(text, "unix:")) {
        address.transport = RPC_UNIX;
        if (address_parse_unix(text + strlen("unix:"), &address, err))
            return -1;
    } else if (!str_eq(text, "stdio") && !str_eq(text, "stdio://")) {
        return err_set(err, ERR_UNSUPPORTED,
                       "unsupported address \"%.80s\": should be ws://IP:PORT, unix:PATH or stdio",
                       text);
    }
    *ret = address;
    return 0;
}

int rpc_address_parse_http(const char *text, const char *path, struct rpc_address *ret,
                           struct err *err)
{
    static const char scheme[] = "http://";
    struct rpc_address address = {.transport = RPC_HTTP};
    AUTO_FREE char *rest = alloc_str(str_starts(text, scheme) ? text + strlen(scheme) : "");

    if (str_ends(rest, path))
        rest[strlen(rest) - strlen(path)] = '\0';
    if (address_parse_ip(text, rest, &address, err))
        return -1;
    *ret = address;
    return 0;
}

void rpc_address_format(const struct rpc_address *address, char ret[RPC_ADDRESS_TEXT_SIZE])
{
    const char *scheme = address->transport == RPC_HTTP ? "http" : "ws";
    char host[INET6_ADDRSTRLEN] = "";

    switch (address->transport) {
    case RPC_STDIO:
        snprintf(ret, RPC_ADDRESS_TEXT_SIZE, "stdio");
        return;
    case RPC_UNIX:
        snprintf(ret, RPC_ADDRESS_TEXT_SIZE, "unix:%.110s", address->path);
        return;
    case RPC_WS:
    case RPC_HTTP:
        break;
    }
    if (address->ip.any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &address->ip.v6.sin6_addr, host, sizeof host);
        snprintf(ret, RPC_ADDRESS_TEXT_SIZE, "%s://[%s]:%u", scheme, host,
                 ntohs(address->ip.v6.sin6_port));
    } else {
        inet_ntop(AF_INET, &address->ip.v4.sin_addr, host, sizeof host);
        snprintf(ret, RPC_ADDRESS_TEXT_SIZE, "%s://%s:%u", scheme, host,
                 ntohs(address->ip.v4.sin_port));
    }
}

bool rpc_address_is_loopback(const struct rpc_address *address)
{
    if (address->transport != RPC_WS && address->transport != RPC_HTTP)
        return true;
    if (address->ip.any.sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&address->ip.v6.sin6_addr);
    return ntohl(address->ip.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

socklen_t rpc_address_ip_len(const struct rpc_address *address)
{
    return address->ip.any.sa_family == AF_INET6 ? sizeof address->ip.v6 : sizeof address->ip.v4;
}

/* --- binding --- */

#define STARTING_NS CLOCK_NS_PER_S

enum { BACKLOG = 512, ACCEPTS_PER_ROUND = 2, PAUSE_S = 1 };

/* A socket file that we made, so that only that one is removed. */
struct socket_file {
    char path[RPC_ADDRESS_TEXT_SIZE]; /* empty: none */
    dev_t dev;
    ino_t ino;
};

struct rpc_listener {
    const struct listener_events *events;
    void *data;
    struct loop_watch *watch;
    int fd; /* -1: stdio */
    struct rpc_address address;
    struct socket_file file;
    char url[RPC_ADDRESS_TEXT_SIZE];
    uint64_t resume_ns; /* accepts nothing before; 0: accepts */
};

static int bind_ip(const struct rpc_address *address, struct err *err)
{
    const int on = 1;
    int family = address->ip.any.sa_family;
    AUTO_CLOSE int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return err_sys(err, "making a socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(fd, &address->ip.any, rpc_address_ip_len(address)) || listen(fd, BACKLOG))
        return err_sys(err, "listening");
    return TAKE_FD(fd);
}

/* The directory of the socket, locked until it is closed: a server that is just starting has it for a moment.
 * Who has it for longer is none (a command can lock what it can read), and keeps nobody from starting. */
static int lock_dir(const char *path, struct err *err)
{
    char copy[RPC_ADDRESS_TEXT_SIZE];
    AUTO_CLOSE int fd = -1;

    snprintf(copy, sizeof copy, "%s", path);
    fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, "opening the directory of %s", path);
    if (lock_take(fd, LOCK_EX, STARTING_NS) && errno != EWOULDBLOCK)
        return err_sys(err, "locking the directory of %s", path);
    return TAKE_FD(fd);
}

/* Fails unless the file is a socket of ours behind which no process listens. */
static int check_stale(const struct sockaddr_un *name, struct err *err)
{
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct stat info;

    if (fd < 0)
        return err_sys(err, "making a socket");
    if (lstat(name->sun_path, &info))
        return err_sys(err, "looking at %s", name->sun_path);
    if (!S_ISSOCK(info.st_mode))
        return err_set(err, ERR_INVALID, "%s is there and is no socket", name->sun_path);
    if (info.st_uid != geteuid())
        return err_set(err, ERR_FORBIDDEN, "%s is a socket of another user", name->sun_path);
    if (connect(fd, (const struct sockaddr *)name, sizeof *name) == 0 || errno != ECONNREFUSED)
        return err_set(err, ERR_INVALID, "%s: another server listens there", name->sun_path);
    return 0;
}

static int bind_name(int fd, const struct sockaddr_un *name, struct err *err)
{
    const struct sockaddr *any = (const struct sockaddr *)name;

    if (bind(fd, any, sizeof *name) == 0)
        return 0;
    if (errno != EADDRINUSE)
        return err_sys(err, "listening");
    if (check_stale(name, err))
        return -1;
    if (unlink(name->sun_path) || bind(fd, any, sizeof *name))
        return err_sys(err, "replacing the left-over socket %s", name->sun_path);
    return 0;
}

static int bind_unix(const char *path, struct socket_file *ret_file, struct err *err)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct socket_file file = {.path = ""};
    struct stat info;
    AUTO_CLOSE int lock = lock_dir(path, err);
    AUTO_CLOSE int fd = -1;

    if (lock < 0)
        return -1;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || fchmod(fd, 0600))
        return err_sys(err, "making a socket");
    memcpy(name.sun_path, path, strnlen(path, sizeof name.sun_path - 1));
    if (bind_name(fd, &name, err))
        return -1;
    if (lstat(path, &info) || listen(fd, BACKLOG))
        return err_sys(err, "listening");
    snprintf(file.path, sizeof file.path, "%s", path);
    file.dev = info.st_dev;
    file.ino = info.st_ino;
    *ret_file = file;
    return TAKE_FD(fd);
}

static int socket_option(int fd, int option)
{
    int value = -1;
    socklen_t len = sizeof value;

    return getsockopt(fd, SOL_SOCKET, option, &value, &len) ? -1 : value;
}

int listener_identify(int fd, struct rpc_address *ret, struct err *err)
{
    struct sockaddr_un name = {.sun_family = AF_UNSPEC};
    struct rpc_address address = {.transport = RPC_WS};
    socklen_t len = sizeof name;
    int domain = socket_option(fd, SO_DOMAIN);

    if (socket_option(fd, SO_ACCEPTCONN) != 1 || socket_option(fd, SO_TYPE) != SOCK_STREAM)
        return err_set(err, ERR_INVALID, "descriptor %d is no listening stream socket", fd);
    if (getsockname(fd, (struct sockaddr *)&name, &len))
        return err_sys(err, "asking for the name of socket %d", fd);
    if (domain == AF_UNIX) {
        address.transport = RPC_UNIX;
        snprintf(address.path, sizeof address.path, "%.*s", (int)sizeof name.sun_path,
                 name.sun_path);
    } else if (domain == AF_INET || domain == AF_INET6) {
        memcpy(&address.ip, &name, sizeof address.ip);
    } else {
        return err_set(err, ERR_INVALID, "descriptor %d is neither a TCP nor a Unix socket", fd);
    }
    *ret = address;
    return 0;
}

/* --- accepting --- */

static void listener_ready(void *data, int fd, unsigned ready)
{
    struct rpc_listener *listener = data;

    for (int i = 0; i < ACCEPTS_PER_ROUND; i++) {
        struct rpc_address from = {.transport = listener->address.transport};
        socklen_t len = sizeof from.ip;
        int peer = accept4(fd, &from.ip.any, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (peer >= 0) {
            listener->events->on_accept(listener->data, peer, &from);
            continue;
        }
        if (errno == EAGAIN)
            return;
        if (errno != ECONNABORTED && errno != EINTR) {
            log_event(LOG_LEVEL_WARN, "accept-failed", log_text("why", strerror(errno)));
            loop_watch_set(listener->watch, LOOP_NOTHING);
            listener->resume_ns = clock_after(clock_now_ns(), PAUSE_S * CLOCK_NS_PER_S);
            listener->events->on_pause(listener->data, listener->resume_ns);
            return;
        }
    }
}

uint64_t listener_tick(struct rpc_listener *listener, uint64_t now_ns)
{
    if (!listener->resume_ns)
        return UINT64_MAX;
    if (listener->resume_ns > now_ns)
        return listener->resume_ns;
    listener->resume_ns = 0;
    loop_watch_set(listener->watch, LOOP_READ);
    return UINT64_MAX;
}

/* --- the life of one --- */

struct rpc_listener *listener_new(const struct rpc_address *address,
                                  const struct listener_events *events, void *data)
{
    struct rpc_listener *listener = alloc_zero(1, sizeof *listener);

    *listener =
        (struct rpc_listener){.events = events, .data = data, .fd = -1, .address = *address};
    rpc_address_format(address, listener->url);
    return listener;
}

void listener_free(struct rpc_listener *listener)
{
    const struct socket_file *file;
    struct stat info;

    if (!listener)
        return;
    loop_watch_free(listener->watch);
    if (listener->fd >= 0)
        close(listener->fd);
    file = &listener->file; /* removed when it is still the one that was made */
    if (*file->path && lstat(file->path, &info) == 0 && info.st_dev == file->dev &&
        info.st_ino == file->ino)
        unlink(file->path);
    free(listener);
}

int listener_start(struct rpc_listener *listener, struct loop *loop, int fd, struct err *err)
{
    const enum rpc_transport asked = listener->address.transport;

    if (fd < 0 && listener->address.transport == RPC_UNIX)
        fd = bind_unix(listener->address.path, &listener->file, err);
    else if (fd < 0)
        fd = bind_ip(&listener->address, err);
    if (fd < 0)
        return err_wrap(err, "%s", listener->url);
    listener->fd = fd;
    if (listener_identify(listener->fd, &listener->address, err))
        return -1;
    listener->address.transport = asked;
    rpc_address_format(&listener->address, listener->url);
    listener->watch = loop_watch_new(loop, listener->fd, LOOP_READ, listener_ready, listener, err);
    return listener->watch ? 0 : -1;
}

const char *rpc_listener_url(const struct rpc_listener *listener)
{
    return listener->url;
}
