/* Waits with poll(2) instead of the loop, because the caller has nothing else to do before there is
 * a connection. Bytes behind the server's handshake are kept for the first reader. */
#include "rpc/transport/connect.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "rpc/transport/http.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { CONNECT_S = 10 }; /* as Codex's client */

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

static socklen_t address_to_socket(const struct rpc_address *address, struct sockaddr_storage *ret)
{
    struct sockaddr_un *local = (struct sockaddr_un *)ret;

    *ret = (struct sockaddr_storage){0};
    if (address->transport == RPC_WS) {
        memcpy(ret, &address->ip, sizeof address->ip);
        return address->ip.any.sa_family == AF_INET6 ? sizeof address->ip.v6
                                                     : sizeof address->ip.v4;
    }
    local->sun_family = AF_UNIX;
    snprintf(local->sun_path, sizeof local->sun_path, "%.*s", (int)sizeof local->sun_path - 1,
             address->path);
    return sizeof *local;
}

static int attempt_connect(const struct attempt *attempt, const struct rpc_address *address,
                           struct err *err)
{
    struct sockaddr_storage name;
    socklen_t len = address_to_socket(address, &name);
    int failure = 0;
    socklen_t failure_len = sizeof failure;

    if (connect(attempt->fd, (struct sockaddr *)&name, len) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return err_sys(err, "no connection");
    if (attempt_wait(attempt, POLLOUT, err))
        return -1;
    if (getsockopt(attempt->fd, SOL_SOCKET, SO_ERROR, &failure, &failure_len))
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
static int attempt_upgrade(const struct attempt *attempt, const struct rpc_address *address,
                           const char *token, struct buf *ret, struct err *err)
{
    const int on = 1;
    char url[RPC_ADDRESS_TEXT_SIZE];
    char key[HANDSHAKE_KEY_SIZE];
    AUTO(buf_done) struct buf request;
    size_t len;

    buf_init(&request, HTTP_HEAD_MAX);
    rpc_address_format(address, url);
    handshake_key(key);
    handshake_request(url, key, token, &request);
    setsockopt(attempt->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (attempt_send(attempt, &request, err) || attempt_read_head(attempt, ret, err))
        return -1;
    len = http_head_len(ret->data, ret->len);
    if (handshake_check(ret->data, len, key, err))
        return -1;
    buf_consume(ret, len);
    return 0;
}

int connect_open(const struct rpc_address *address, const char *token, struct buf *ret_early,
                 struct err *err)
{
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
        (address->transport == RPC_WS && attempt_upgrade(&attempt, address, token, ret_early, err)))
        return -1;
    return TAKE_FD(fd);
}
