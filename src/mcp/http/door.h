/* Who comes in by HTTP, to what, and what is said to who does not. Pure, but for the random numbers.
 *
 * In the order in which it is asked for every request, before any of its body is read: door_lets_in(), then whose
 * process it is (rpc/transport/peer_admission.h), then door_routes(). What a stranger is told is the same for
 * every path and method. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct http_request;
struct rpc_auth;

#define DOOR_PATH "/mcp"

enum { DOOR_SESSION_ID_SIZE = 33 }; /* 128 random bits in hex, and the NUL */

/* Status 0: go on. */
struct door_answer {
    int status;
    const char *text;  /* what would be right */
    const char *allow; /* methods, with 405 */
};

/* What it depends on besides the head. */
struct door_situation {
    const struct rpc_auth *auth; /* NULL: only the process counts */
    const char *address;         /* that the client came to, as rpc_address_format() has it */
    uint16_t port;               /* of that */
    bool is_loopback;            /* it is such an address: hosts and origins are names of it */
};

/* Host, Origin, token. */
struct door_answer door_lets_in(const struct http_request *request,
                                const struct door_situation *situation);

/* Path, method, and whether the answer is one that the client takes. */
struct door_answer door_routes(const struct http_request *request);

/* A new one, which nobody can guess. */
void door_session_id(char ret[DOOR_SESSION_ID_SIZE]);
