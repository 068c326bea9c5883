/* The first message of a TLS client (RFC 8446, 4.1.2, and before), for the one thing in it that is said in the open: the
 * name of the server. Pure, allocates nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TLS_HELLO_MAX = 16384, /* bytes of the message; what is longer is refused */
    TLS_NAME_SIZE = 256,
};

enum tls_step {
    TLS_NONE, /* it is not TLS */
    TLS_MORE,
    TLS_WHOLE,
    TLS_BAD, /* it is, but not as it should be */
};

struct tls_hello {
    char name[TLS_NAME_SIZE]; /* as sent; "" when there is none */
};

/* `bytes` are the first of a connection, as many as have come. */
enum tls_step tls_hello_read(const uint8_t *bytes, size_t len, struct tls_hello *ret);
