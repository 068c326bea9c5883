/* What is answered over HTTP. Pure: text out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf;

/* A head, and all of its body. */
struct reply {
    int status;
    const char *text; /* JSON; NULL: no body */
    size_t len;
    const char *allow;   /* methods, with 405; NULL: none */
    const char *session; /* its id; NULL: none */
    bool closes;         /* the connection, behind it */
    bool is_to_head;     /* the text is not sent, only how long it is (RFC 9110, 9.3.2) */
};

/* False: the limit of the buffer. */
bool reply_write(const struct reply *reply, struct buf *ret);

/* The head of a stream of events. It is chunked, so that its end can be told from a break and the connection stays,
 * or goes on until the connection is closed, to a client of HTTP/1.0. */
bool reply_write_stream(const char *session, bool is_chunked, struct buf *ret);

/* Appends the text as a chunk; the last one is empty. */
bool reply_write_chunk(const char *text, size_t len, struct buf *ret);

/* Appends what says in JSON-RPC that no message could be taken, for people and for clients that show it. */
void reply_error_text(const char *text, struct buf *ret);
