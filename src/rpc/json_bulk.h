/* Long strings, kept out of the JSON parser's way. Internal to rpc.
 *
 *     hoist_text(&hoist, text, len, HOIST_LONG)    parse hoist.text, which is shorter
 *     hoist_restore(&hoist, value)                 puts the strings where they belong
 *
 * The value is then what parsing the whole text would have given; `text` has to live until then. */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stddef.h>

enum { HOIST_LONG = 4096 }; /* bytes from which on it is worth it */

struct hoist_span {
    const char *at;
    size_t len;
};

struct hoist {
    const char *text; /* what to parse: the original or `shorter` */
    size_t len;
    struct buf shorter;
    struct hoist_span *spans; /* the strings, in the original */
    size_t span_count;
    size_t span_cap;
};

/* Takes out every string value of at least `long_enough` bytes that has no escapes and nothing but
 * printable ASCII. Never fails: what is no JSON stays none. */
void hoist_text(struct hoist *hoist, const char *text, size_t len, size_t long_enough);

/* `value` is nested at most JSON_DEPTH_MAX deep, as json_parse() sees to. */
void hoist_restore(const struct hoist *hoist, json_t *value);

void hoist_done(struct hoist *hoist);
