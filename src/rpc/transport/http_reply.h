/* What is answered to which HTTP request. Pure: a head in, a reply out. Internal to rpc.
 *
 *     /           the upgrade to WebSocket
 *     /readyz, /healthz    200, for anybody
 *     /metrics    whatever the owner has to say, to those who may connect
 *
 * Anything with an Origin is from a browser, and is refused before anything else. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct http_head;
struct rpc_auth;

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
    bool is_refusal;   /* because of who asks or how many there are, for the statistics */
    bool is_bodiless;  /* HEAD */
};

/* What the answer depends on besides the head. */
struct http_situation {
    const struct rpc_auth *auth; /* NULL: everybody may */
    bool has_metrics;
    bool is_full; /* no room for another peer */
};

struct http_reply http_reply_to(const struct http_head *head,
                                const struct http_situation *situation);

/* To what is no request. */
struct http_reply http_reply_error(int status, const char *text);

/* Appends the whole reply; `body` is used for HTTP_PAGE_METRICS. */
void http_reply_write(const struct http_reply *reply, const struct buf *body, struct buf *ret);

enum { HTTP_ACCEPT_SIZE = 29 }; /* 20 bytes in base64, and the NUL */

/* What a Sec-WebSocket-Key has to be answered with (RFC 6455, 4.2.2): SHA-1 of it and a constant.
 */
void http_accept_of(const char *key, char ret[HTTP_ACCEPT_SIZE]);
