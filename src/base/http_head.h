/* Heads of HTTP/1.x (RFC 9112), read strictly: CRLF only, no line folding, no space before a colon, no
 * control characters, and none of the fields twice of which a second one could contradict the
 * first. Pure, and allocates nothing. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { HTTP_FIELDS_MAX = 100 };

struct http_field {
    const char *name;
    const char *value; /* without white space around it */
};

/* Everything points into the text that was parsed. */
struct http_head {
    const char *method; /* of a request, as is the next */
    const char *target;
    int status;         /* of a reply, as is the next */
    const char *phrase; /* for people; "" */
    int minor;          /* of the version: 0 or 1 */
    struct http_field fields[HTTP_FIELDS_MAX];
    size_t field_count;
};

/* Bytes of the head up to the empty line, it included, when all of it is there; 0 otherwise. */
size_t http_head_len(const char *text, size_t len);

/* The first line has no CR before its LF: it is a head that never ends for us, and does for servers that take such lines. */
bool http_head_has_bare_line_feed(const char *text, size_t len);

/* Of a request, and of a reply. `text` is http_head_len() bytes, and is cut up in place. */
int http_head_parse(char *text, size_t len, struct http_head *ret, struct err *err);
int http_head_parse_reply(char *text, size_t len, struct http_head *ret, struct err *err);

/* Whether a server could take one name of a field for the other: letters in any case, and, as CGI and its like have it, "_"
 * for "-". */
bool http_is_same_field(const char *a, const char *b);

/* The value of the first field of this name, in any case of letters; NULL when there is none. */
const char *http_head_field(const struct http_head *head, const char *name);

/* Whether the comma-separated list of a field (all of that name) has `word`, in any case. */
bool http_head_has_word(const struct http_head *head, const char *name, const char *word);

/* tchar of RFC 9110, 5.6.2: what a method and the name of a field are made of. */
bool http_is_token(const char *text);
