/* SOCKS 5 (RFC 1928) as far as the proxy speaks it: no authentication, since whose a connection is is known from where it
 * came. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SOCKS_VERSION = 5 };

enum socks_step { SOCKS_MORE, SOCKS_WHOLE, SOCKS_BAD };

/* The greeting: methods that the client knows. `*ret_used`: its bytes. */
enum socks_step socks_read_greeting(const uint8_t *bytes, size_t len, size_t *ret_used);

/* The answer to it. */
extern const uint8_t socks_no_authentication[2];
extern const uint8_t socks_no_method[2];

enum socks_command { SOCKS_CONNECT = 1, SOCKS_BIND = 2, SOCKS_UDP = 3 };

enum socks_reply {
    SOCKS_OK = 0,
    SOCKS_FAILURE = 1,
    SOCKS_NOT_ALLOWED = 2,
    SOCKS_NETWORK_UNREACHABLE = 3,
    SOCKS_HOST_UNREACHABLE = 4,
    SOCKS_REFUSED = 5,
    SOCKS_EXPIRED = 6,
    SOCKS_NO_COMMAND = 7,
    SOCKS_NO_ADDRESS_TYPE = 8,
};

struct socks_request {
    uint8_t command; /* of enum socks_command, or none of them */
    uint16_t port;
    char host[256]; /* a name, or an address as text; an IPv6 one without brackets */
};

/* SOCKS_BAD: `*ret_reply` says why. A name with a NUL or a control character is none. */
enum socks_step socks_read_request(const uint8_t *bytes, size_t len, struct socks_request *ret,
                                   size_t *ret_used, enum socks_reply *ret_reply);

/* The reply, without an address: nobody needs it. */
enum { SOCKS_REPLY_BYTES = 10 };
void socks_write_reply(enum socks_reply reply, uint8_t ret[SOCKS_REPLY_BYTES]);
