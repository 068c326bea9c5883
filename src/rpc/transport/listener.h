/* Sockets that listen: TCP on an IP address, or Unix.
 *
 *     listener_new(&address, &events, data)
 *     listener_start(listener, loop, fd, err)        from here on on_accept comes
 *     listener_free(listener)                        a socket file that was made goes, too
 */
#pragma once

#include "base/err.h"
#include "rpc/transport/address.h"

#include <stdint.h>

struct loop;
struct rpc_listener;

struct listener_events {
    /* A connection, whose descriptor becomes the owner's. `from` tells the transport and, of
     * RPC_WS, the IP address. */
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
