/* The opening handshake of a WebSocket as the side that connects does it (RFC 6455, 4.1): pure
 * text. Internal to rpc. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct buf;

enum {
    HANDSHAKE_KEY_SIZE = 25,    /* 16 bytes in base64, and the NUL */
    HANDSHAKE_TOKEN_MAX = 8192, /* bytes of a token: a head has 16 KiB in all */
};

/* A new random key. */
void handshake_key(char ret[HANDSHAKE_KEY_SIZE]);

/* Whether the text may stand in a head: visible ASCII, and not too long. */
bool handshake_token_is_valid(const char *token);

/* Appends the request. `url` is "ws://HOST:PORT"; `token` may be NULL. */
void handshake_request(const char *url, const char *key, const char *token, struct buf *ret);

/* `text` is a whole head, and is cut up in place. ERR_FORBIDDEN for 401 and 403, ERR_LIMIT for 503,
 * ERR_INVALID for everything else that is not the answer to `key`. */
int handshake_check(char *text, size_t len, const char *key, struct err *err);
