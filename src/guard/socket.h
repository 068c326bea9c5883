/* Sockets: what they are, and what they may be connected and bound to. */
#pragma once

#include "guard/guard.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

/* The answer to socket(2), connect(2) and bind(2), as far as they are asked. */
struct answer socket_call(const struct request *request);

/* An address as the caller gave it: read once. */
struct address {
    union {
        struct sockaddr any;
        struct sockaddr_un local;
        struct sockaddr_in ip4;
        struct sockaddr_in6 ip6;
        char bytes[sizeof(struct sockaddr_storage) + 1]; /* always ends with a 0 */
    };
    socklen_t len;
};

/* The path of a Unix socket's address; NULL for a name that is none, or no name at all. */
const char *address_path(const struct address *address);

/* "host:port" of an address that is not this machine's own; false for all others. */
bool address_format_remote(const struct address *address, char *ret, size_t size);
