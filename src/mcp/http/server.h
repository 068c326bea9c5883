/* MCP over HTTP ("Streamable HTTP"): one path, DOOR_PATH, on listeners of its own.
 *
 *     mcp_http_new(&options)    listens from here on
 *     mcp_http_free()           closes everything; sessions and what runs for them end
 */
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct mcp;
struct mcp_http;
struct rpc_address;
struct rpc_auth;

struct mcp_http_options {
    struct mcp *mcp;
    const struct rpc_address *addresses; /* of RPC_HTTP */
    size_t addresses_len;
    const struct rpc_auth *auth; /* borrowed; NULL: as in rpc/rpc.h */
    uint64_t
        session_idle_ns; /* a session ends that nobody has listened to for so long, and that works on no request */
};

/* NULL on failure. ERR_FORBIDDEN: an address that is not loopback, and nothing that everybody there has to bring. */
struct mcp_http *mcp_http_new(const struct mcp_http_options *options, struct err *err);
void mcp_http_free(struct mcp_http *http);

/* Does what is due by clock_now_ns(). It comes by a timer; tests that stop the clock call it themselves. */
void mcp_http_tick(struct mcp_http *http);

/* "http://127.0.0.1:4711/mcp" of the address with that index; borrowed. */
const char *mcp_http_url(const struct mcp_http *http, size_t index);
