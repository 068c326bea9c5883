/* Requests and replies of HTTP/1.x as proxy and server have to understand them: whom a request is for, and where a message
 * ends. Pure: text in, values out. What two programs could read differently is refused (base/http_head.h), above
 * all a length that is said in two ways. */
#pragma once

#include "base/err.h"
#include "base/http_head.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum { HTTP_MESSAGE_HEAD_MAX = 8192 }; /* bytes up to the empty line, it included */

/* What the first bytes of a connection are: a request, whose first line says so. */
enum http_look { HTTP_LOOK_NO, HTTP_LOOK_MAYBE, HTTP_LOOK_YES };
enum http_look http_looks_like(const char *bytes, size_t len);

/* What follows a head, and how far it has come. */
struct http_body {
    enum http_body_kind {
        HTTP_BODY_NONE,
        HTTP_BODY_LENGTH,
        HTTP_BODY_CHUNKED,
        HTTP_BODY_TO_END, /* of the connection; of replies alone */
    } kind;
    uint64_t left;        /* bytes of it, or of its chunk */
    unsigned state;       /* CHUNKED: enum chunk_state of http_message.c */
    unsigned count;       /* CHUNKED: digits of the size, or bytes of the extension or trailer */
    bool has_no_trailers; /* CHUNKED: those would be fields that nobody has judged */
};

enum http_form {
    HTTP_ORIGIN,    /* "/path" */
    HTTP_ABSOLUTE,  /* "http://host/path", to a proxy */
    HTTP_AUTHORITY, /* "host:port", of CONNECT */
    HTTP_ASTERISK,  /* "*", of OPTIONS */
};

struct http_request {
    struct http_head head;
    enum http_form form;
    const char
        *authority; /* "host" or "host:port" of ABSOLUTE and AUTHORITY, not judged yet; else NULL */
    const char *path; /* of ORIGIN and ABSOLUTE: from "/" or "?" on; "/" when there is none */
    const char *host; /* value of Host; NULL: there is none, which version 1.0 may */
    struct http_body body;
    bool stays;          /* the connection is for another request after this one */
    bool wants_upgrade;  /* to another protocol */
    bool wants_continue; /* it sends no body before it hears "100 Continue" */
    bool says_otherwise; /* it has fields that some servers take in place of its method or path */
};

struct http_reply_head {
    struct http_head head;
    struct http_body body;
    bool stays;
    bool is_interim; /* 1xx but 101: another head follows */
};

/* `text` is http_head_len() bytes, at most HTTP_MESSAGE_HEAD_MAX, and is cut up in place. ERR_INVALID with what
 * is wrong. */
int http_request_read(char *text, size_t len, struct http_request *ret, struct err *err);

/* The same of a reply to a request with the method `to`. */
int http_reply_read(char *text, size_t len, const char *to, struct http_reply_head *ret,
                    struct err *err);

/* How many of the bytes, which follow what it got before, belong to the body; all but HTTP_BODY_TO_END know where
 * they end: `*ret_is_over`. */
int http_body_read(struct http_body *body, const char *bytes, size_t len, size_t *ret_used,
                   bool *ret_is_over, struct err *err);

/* What came of a body, and what of it is data. */
struct http_piece {
    const char *bytes; /* not read yet, and how many */
    size_t len;
    const char *data; /* among those that were read last */
    size_t data_len;
};

/* The same for who wants the data: reads up to the end of the bytes, or of the first data of a chunk. To be called
 * until the bytes are used or the body is over. */
int http_body_take(struct http_body *body, struct http_piece *piece, bool *ret_is_over,
                   struct err *err);

/* Takes those fields out that are for the next hop alone. */
void http_drop_next_hop(struct http_head *head);

/* Appends the head of a reply, written anew. False: the limit of the buffer. */
bool http_write_reply(const struct http_reply_head *reply, bool closes, struct buf *ret);

/* Appends the fields of a head as "Name: value" lines, without those that are for the next hop alone (named in
 * Connection, and those of RFC 9110, 7.6.1), but with how the body is framed; and without Host. False: the
 * limit of the buffer. */
bool http_write_fields(const struct http_head *head, struct buf *ret);
