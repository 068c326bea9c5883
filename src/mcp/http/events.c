/* See events.h. One list for all streams of a session, in the order in which events came: there are few, and they are
 * looked for only when a connection broke. */
#include "mcp/http/events.h"

#include "base/alloc.h"
#include "base/buf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_MS = 1000 };

/* 1*DIGIT that fits; NULL: none. */
static const char *read_number(const char *text, uint64_t *ret)
{
    size_t len = strspn(text, "0123456789");

    if (!len || len > 18 || (len > 1 && *text == '0'))
        return NULL;
    *ret = strtoull(text, NULL, 10);
    return text + len;
}

bool event_id_parse(const char *text, struct event_id *ret)
{
    struct event_id id;
    const char *at = read_number(text, &id.stream);

    if (!at || *at != '-' || !(at = read_number(at + 1, &id.number)) || *at)
        return false;
    *ret = id;
    return true;
}

static bool write_id(struct buf *buf, const struct event_id *id)
{
    return !id || buf_appendf(buf, "id: %" PRIu64 "-%" PRIu64 "\n", id->stream, id->number);
}

bool event_write(struct buf *buf, const struct event_id *id, const char *text, size_t len)
{
    const size_t was = buf->len;

    if (write_id(buf, id) && (text ? buf_append_str(buf, "event: message\ndata: ") &&
                                         buf_append(buf, text, len) && buf_append_str(buf, "\n\n")
                                   : buf_appendf(buf, "retry: %d\ndata:\n\n", RETRY_MS)))
        return true;
    buf->len = was;
    if (buf->data)
        buf->data[was] = '\0';
    return false;
}

static void drop_first(struct event_store *store)
{
    struct event *event = list_first(&store->events, struct event, in_store);

    if (!event)
        return;
    list_remove(&event->in_store);
    store->count--;
    store->bytes -= event->len;
    free(event->text);
    free(event);
}

void event_store_done(struct event_store *store)
{
    while (store->count)
        drop_first(store);
}

void event_store_add(struct event_store *store, struct event_id id, const char *text, size_t len)
{
    struct event *event = alloc_zero(1, sizeof *event);

    event->id = id;
    event->text = text ? alloc_strn(text, len) : NULL;
    event->len = len;
    list_append(&store->events, &event->in_store);
    store->count++;
    store->bytes += len;
    while (store->count > 1 && (store->count > EVENTS_MAX || store->bytes > EVENTS_BYTES_MAX))
        drop_first(store);
}

static const struct event *store_find(const struct event_store *store, struct event_id id)
{
    const struct event *event;

    list_for_each(event, &store->events, in_store)
        if (event->id.stream == id.stream && event->id.number == id.number)
            return event;
    return NULL;
}

const struct event *event_store_after(const struct event_store *store, struct event_id id)
{
    const struct event *event;

    list_for_each(event, &store->events, in_store)
        if (event->id.stream == id.stream && event->id.number >= id.number + 1)
            return event;
    return NULL;
}

bool event_store_goes_on(const struct event_store *store, struct event_id id)
{
    return store_find(store, (struct event_id){id.stream, id.number + 1}) || store_find(store, id);
}
