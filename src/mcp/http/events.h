/* Server-sent events, and those that a session keeps, so that a client whose connection broke can have what it has
 * missed (Streamable HTTP, "Resumability and Redelivery"). Pure.
 *
 * Every stream of a session has a number, and every event of a stream one from 0 on; "STREAM-EVENT" is the id that
 * the client brings back in Last-Event-ID. */
#pragma once

#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum {
    EVENTS_MAX = 256,           /* of one session that are kept */
    EVENTS_BYTES_MAX = 1 << 20, /* the newest is kept in any case */
    EVENT_FRAME_MAX = 128,      /* bytes around the text of one */
};

struct event_id {
    uint64_t stream;
    uint64_t number;
};

/* "STREAM-EVENT" and nothing else. */
bool event_id_parse(const char *text, struct event_id *ret);

/* Appends an event with this text, in which there is no line's end. Without a text it is one that clients take note
 * of, but show nobody: it only has an id, and says after how many milliseconds to come back. `id` NULL: none, of what nobody
 * can come back to; then there is a text. */
bool event_write(struct buf *buf, const struct event_id *id, const char *text, size_t len);

struct event {
    struct list in_store;
    struct event_id id;
    char *text; /* NULL: none */
    size_t len;
};

/* Zeroed: empty. */
struct event_store {
    struct list events; /* oldest first */
    size_t count;
    size_t bytes;
};

void event_store_done(struct event_store *store);

/* Copies the text, which may be NULL. The oldest go where there are too many. */
void event_store_add(struct event_store *store, struct event_id id, const char *text, size_t len);

/* The next event of that stream that is kept; NULL: none. The one before its first has the number -1. */
const struct event *event_store_after(const struct event_store *store, struct event_id id);

/* Whether all that came behind this one is kept, or it is kept itself and was the last. */
bool event_store_goes_on(const struct event_store *store, struct event_id id);
