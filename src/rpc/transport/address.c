/* Listen addresses. Host names are refused on purpose: which of a name's addresses is listened on,
 * and whether that is loopback, should not depend on a resolver. */
#include "rpc/transport/address.h"

#include "base/str.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

static int address_fail_ws(const char *text, struct err *err)
{
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

static int address_parse_ws(const char *text, const char *rest, struct rpc_address *ret,
                            struct err *err)
{
    char host[INET6_ADDRSTRLEN];
    const char *colon = strrchr(rest, ':');
    bool is_v6 = *rest == '[';
    size_t len;
    int port;

    if (!colon)
        return address_fail_ws(text, err);
    port = port_parse(colon + 1);
    len = (size_t)(colon - rest);
    if (is_v6) {
        if (len < 2 || rest[len - 1] != ']')
            return address_fail_ws(text, err);
        rest++;
        len -= 2;
    }
    if (port < 0 || len >= sizeof host)
        return address_fail_ws(text, err);
    memcpy(host, rest, len);
    host[len] = '\0';
    if (!ip_parse(host, port, is_v6, ret))
        return address_fail_ws(text, err);
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
        if (address_parse_ws(text, text + strlen("ws://"), &address, err))
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

void rpc_address_format(const struct rpc_address *address, char ret[RPC_ADDRESS_TEXT_SIZE])
{
    char host[INET6_ADDRSTRLEN] = "";

    switch (address->transport) {
    case RPC_STDIO:
        snprintf(ret, RPC_ADDRESS_TEXT_SIZE, "stdio");
        return;
    case RPC_UNIX:
        snprintf(ret, RPC_ADDRESS_TEXT_SIZE, "unix:%.110s", address->path);
        return;
    case RPC_WS:
        break;
    }
    if (address->ip.any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &address->ip.v6.sin6_addr, host, sizeof host);
        snprintf(ret, RPC_ADDRESS_TEXT_SIZE, "ws://[%s]:%u", host, ntohs(address->ip.v6.sin6_port));
    } else {
        inet_ntop(AF_INET, &address->ip.v4.sin_addr, host, sizeof host);
        snprintf(ret, RPC_ADDRESS_TEXT_SIZE, "ws://%s:%u", host, ntohs(address->ip.v4.sin_port));
    }
}

bool rpc_address_is_loopback(const struct rpc_address *address)
{
    if (address->transport != RPC_WS)
        return true;
    if (address->ip.any.sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&address->ip.v6.sin6_addr);
    return ntohl(address->ip.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}
