/* HTTP/1.x as far as a WebSocket needs it (RFC 6455, 4): what a server answers to a request, and the handshake
 * of the side that connects. Pure: text in, text out. Internal to rpc. What a server answers:
 *
 *     /           the upgrade to WebSocket
 *     /readyz, /healthz    200, for every client
 *     /metrics    what the owner has to say, to clients that may connect
 *
 * Anything with an Origin is from a browser, and is refused before anything else, as is a Host that is
 * no name of this machine where only this machine can come from. */
#pragma once

#include "base/err.h"
#include "base/http_head.h"

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct rpc_auth;

enum { HTTP_HEAD_MAX = 16 * 1024 }; /* bytes up to the empty line, it included */

/* --- replies --- */

enum http_page {
    HTTP_PAGE_NONE,
    HTTP_PAGE_METRICS, /* the body is the owner's */
    HTTP_PAGE_UPGRADE,
};

struct http_reply {
    int status;
    enum http_page page;
    const char *allow; /* methods, with 405 */
    const char *text;  /* the body; NULL: none */
    const char *key;   /* of an upgrade; borrowed from the head */
    const struct rpc_auth
        *auth;        /* of an upgrade: who proves that the token is known; may be NULL */
    bool is_refusal;  /* because of who asks or how many there are, for the statistics */
    bool is_bodiless; /* HEAD */
};

/* What the answer depends on besides the head. */
struct http_situation {
    const struct rpc_auth *auth; /* NULL: every client may */
    const char *address;         /* that the client came to, as rpc_address_format() has it */
    bool has_metrics;
    bool is_full;     /* no room for another peer */
    bool is_loopback; /* the client came to such an address: only a Host that may be one is taken */
};

struct http_reply http_reply_to(const struct http_head *head,
                                const struct http_situation *situation);

/* "localhost" in any case, or an IP address; with a port or without: what a request to a loopback address may name. */
bool http_host_is_local(const char *host);

/* The words of a status; "" where there are none. */
const char *http_status_phrase(int status);

/* Appends the Date field. */
void http_append_date(struct buf *ret);

/* To what is no request. `text` may be NULL. */
struct http_reply http_reply_text(int status, const char *text);

/* Appends the whole reply; `body` is used for HTTP_PAGE_METRICS. */
void http_reply_write(const struct http_reply *reply, const struct buf *body, struct buf *ret);

/* --- the side that connects --- */

enum {
    HANDSHAKE_KEY_SIZE = 25,    /* 16 bytes in base64, and the NUL */
    HANDSHAKE_TOKEN_MAX = 8192, /* bytes of a token: a head has 16 KiB in all */
};

/* A new random key. */
void handshake_key(char ret[HANDSHAKE_KEY_SIZE]);

/* Whether the text may stand in a head: visible ASCII, and not too long. */
bool handshake_token_is_valid(const char *token);

/* What a client knows, of which one at most is not NULL. */
struct handshake_secret {
    const char *token;      /* is sent */
    const char *user_token; /* is not: both sides show that they know it (auth.h) */
};

/* Appends the request. `url` is "ws://HOST:PORT". */
void handshake_request(const char *url, const char *key, const struct handshake_secret *secret,
                       struct buf *ret);

/* `text` is a whole head, and is cut up in place. ERR_FORBIDDEN for 401 and 403 and without the
 * proof for a user's token, ERR_LIMIT for 503, ERR_INVALID for everything else that is not the
 * answer to `key`. */
int handshake_check(char *text, size_t len, const char *key, const struct handshake_secret *secret,
                    struct err *err);
