/* Long strings, kept out of the JSON parser's way. Internal to rpc.
 *
 *     json_bulk_take(&bulk, text, len, JSON_BULK_MIN)    parse bulk.text, which is shorter
 *     json_bulk_restore(&bulk, value)                    puts the strings where they belong
 *
 * The value is then what parsing the whole text would have given; `text` has to live until then. */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stddef.h>

enum { JSON_BULK_MIN = 4096 }; /* bytes from which on it is worth it */

struct json_bulk_span {
    const char *at;
    size_t len;
};

struct json_bulk {
    const char *text; /* what to parse: the original or `shorter` */
    size_t len;
    struct buf shorter;
    struct json_bulk_span *spans; /* the strings, in the original */
    size_t span_count;
    size_t span_cap;
};

/* Takes out every string value of at least `long_enough` bytes that has no escapes and nothing but
 * printable ASCII. Never fails: what is no JSON stays none. */
void json_bulk_take(struct json_bulk *bulk, const char *text, size_t len, size_t long_enough);

/* `value` is nested at most JSON_DEPTH_MAX deep, as json_parse() sees to. */
void json_bulk_restore(const struct json_bulk *bulk, json_t *value);

void json_bulk_done(struct json_bulk *bulk);
