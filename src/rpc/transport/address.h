/* Where to listen, as `--listen` says it: ws://IP:PORT, unix:PATH, stdio (or stdio://). */
#pragma once

#include "base/err.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

enum rpc_transport { RPC_WS, RPC_UNIX, RPC_STDIO };

enum { RPC_ADDRESS_TEXT_SIZE = 128 }; /* "ws://[...]:65535" or "unix:" and sun_path, with the NUL */

struct rpc_address {
    enum rpc_transport transport;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } ip;                             /* of RPC_WS */
    char path[RPC_ADDRESS_TEXT_SIZE]; /* of RPC_UNIX */
};

/* ERR_INVALID for a wrong ws URL (a host name, a missing port), ERR_UNSUPPORTED for
 * anything else; both messages name the text and say what would be right. */
int rpc_address_parse(const char *text, struct rpc_address *ret, struct err *err);

/* Back to text. */
void rpc_address_format(const struct rpc_address *address, char ret[RPC_ADDRESS_TEXT_SIZE]);

/* 127.0.0.0/8 or ::1; what is not IP counts as loopback. */
bool rpc_address_is_loopback(const struct rpc_address *address);
