/* Where to listen, as `--listen` says it: ws://IP:PORT, unix:PATH, stdio (or stdio://). And sockets
 * that do: TCP on an IP address, or Unix.
 *
 *     listener_new(&address, &events, data)
 *     listener_start(listener, loop, fd, err)        from here on on_accept comes
 *     listener_free(listener)                        a socket file that was made goes, too
 */
#pragma once

#include "base/err.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct rpc_listener;

enum rpc_transport {
    RPC_WS,
    RPC_UNIX,
    RPC_STDIO,
    RPC_HTTP, /* only for who asks for it: rpc_address_parse_http() */
};

enum { RPC_ADDRESS_TEXT_SIZE = 128 }; /* "ws://[...]:65535" or "unix:" and sun_path, with the NUL */

struct rpc_address {
    enum rpc_transport transport;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } ip;                             /* of RPC_WS and RPC_HTTP */
    char path[RPC_ADDRESS_TEXT_SIZE]; /* of RPC_UNIX */
};

/* ERR_INVALID for a wrong ws URL (a host name, a missing port), ERR_UNSUPPORTED for
 * anything else; both messages name the text and say what would be right. */
int rpc_address_parse(const char *text, struct rpc_address *ret, struct err *err);

/* http://IP:PORT, of MCP; `path` may follow it. ERR_INVALID says what would be right. */
int rpc_address_parse_http(const char *text, const char *path, struct rpc_address *ret,
                           struct err *err);

/* Back to text. */
void rpc_address_format(const struct rpc_address *address, char ret[RPC_ADDRESS_TEXT_SIZE]);

/* 127.0.0.0/8 or ::1; what is not IP counts as loopback. */
bool rpc_address_is_loopback(const struct rpc_address *address);

/* Of an IP address, for the system. */
socklen_t rpc_address_ip_len(const struct rpc_address *address);

struct listener_events {
    /* A connection, whose descriptor becomes the owner's. `from` tells the transport and, of
     * RPC_WS and RPC_HTTP, the IP address. */
    void (*on_accept)(void *data, int fd, const struct rpc_address *from);

    /* No descriptors are left: nothing is accepted until listener_tick() is called at that time. */
    void (*on_pause)(void *data, uint64_t until_ns);
};

/* Of RPC_STDIO it is never started, and only has a URL. Never NULL. */
struct rpc_listener *listener_new(const struct rpc_address *address,
                                  const struct listener_events *events, void *data);
void listener_free(struct rpc_listener *listener);

/* `fd` listens already and becomes the listener's, also on failure; -1: a socket is made. */
int listener_start(struct rpc_listener *listener, struct loop *loop, int fd, struct err *err);

/* Accepts again when the pause is over; returns when it is to be called next, UINT64_MAX: never. */
uint64_t listener_tick(struct rpc_listener *listener, uint64_t now_ns);

/* What a listening socket that came from outside is bound to. ERR_INVALID for other things. */
int listener_identify(int fd, struct rpc_address *ret, struct err *err);

/* "ws://127.0.0.1:4711" with the real port, "unix:/run/x.sock", "stdio"; borrowed. */
const char *rpc_listener_url(const struct rpc_listener *listener);
