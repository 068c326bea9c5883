/* The connecting side of a transport. Internal to rpc. */
#pragma once

#include "base/err.h"
#include "rpc/transport/address.h"

struct buf;

enum { CONNECT_EARLY_MAX = 16 * 1024 }; /* bytes of `ret_early`: an HTTP head's */

/* A connected socket that does not block; of RPC_WS the handshake is done, and `ret_early` has what
 * came behind it. Waits, 10 s at most. `token` may be NULL. ERR_SYSTEM when no server answers
 * (`sys` tells), ERR_FORBIDDEN when it wants a token or another one, ERR_INVALID when it is no
 * WebSocket server. */
int connect_open(const struct rpc_address *address, const char *token, struct buf *ret_early,
                 struct err *err);
