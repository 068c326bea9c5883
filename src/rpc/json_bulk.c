/* jansson reads strings character by character, some 70 MB/s, and what clients send in bulk is
 * base64 inside of one string. So such strings are replaced by the text "\u0001N" before parsing,
 * and the N-th is copied into the finished value after. No other string can be taken for such a
 * mark: a text that has \u0001 anywhere is left alone (as a raw byte it is not allowed in JSON).
 * Keys stay. */
#include "rpc/json_bulk.h"

#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char mark[] = "\\u0001";

/* Printable ASCII without a backslash; there is no quote in it. */
static bool is_plain(const char *text, size_t len)
{
    unsigned bad = 0;

    for (size_t i = 0; i < len; i++)
        bad |= (unsigned)((unsigned char)(text[i] - ' ') > '~' - ' ') | (text[i] == '\\');
    return !bad;
}

/* Whether what comes behind a string makes it a key. */
static bool is_key(const char *text, size_t len)
{
    size_t i = 0;

    while (i < len && strchr(" \t\r\n", text[i]) && text[i])
        i++;
    return i < len && text[i] == ':';
}

/* The closing quote of the string whose first byte is `text`; NULL when there is none.
 * `*ret_is_long`: it has at least `long_enough` bytes, all of them plain. */
static const char *string_end(const char *text, const char *end, size_t long_enough,
                              bool *ret_is_long)
{
    const char *quote = memchr(text, '"', (size_t)(end - text));
    size_t len = quote ? (size_t)(quote - text) : 0;

    *ret_is_long = quote && len >= long_enough && is_plain(text, len);
    if (!quote || *ret_is_long || !memchr(text, '\\', len))
        return quote;
    while (text < end && *text != '"')
        text += *text == '\\' && text + 1 < end ? 2 : 1;
    return text < end ? text : NULL;
}

static void json_bulk_find(struct json_bulk *bulk, const char *text, size_t len, size_t long_enough)
{
    const char *end = text + len;
    const char *at = text;

    while (at < end && (at = memchr(at, '"', (size_t)(end - at)))) {
        bool is_long;
        const char *close = string_end(++at, end, long_enough, &is_long);

        if (!close)
            return;
        if (is_long && !is_key(close + 1, (size_t)(end - close - 1))) {
            bulk->spans =
                alloc_grow(bulk->spans, bulk->span_count, &bulk->span_cap, sizeof *bulk->spans);
            bulk->spans[bulk->span_count++] = (struct json_bulk_span){at, (size_t)(close - at)};
        }
        at = close + 1;
    }
}

/* false when the text between the strings has something that looks like a mark. */
static bool json_bulk_shorten(struct json_bulk *bulk, const char *text, size_t len)
{
    const char *from = text;
    size_t left;

    for (size_t i = 0; i < bulk->span_count; i++) {
        const struct json_bulk_span *span = &bulk->spans[i];
        size_t gap = (size_t)(span->at - from);

        if (memmem(from, gap, mark, strlen(mark)))
            return false;
        buf_append(&bulk->shorter, from, gap);
        buf_appendf(&bulk->shorter, "%s%zu", mark, i);
        from = span->at + span->len;
    }
    left = len - (size_t)(from - text);
    if (memmem(from, left, mark, strlen(mark)))
        return false;
    buf_append(&bulk->shorter, from, left);
    return true;
}

void json_bulk_take(struct json_bulk *bulk, const char *text, size_t len, size_t long_enough)
{
    *bulk = (struct json_bulk){.text = text, .len = len};
    buf_init(&bulk->shorter, SIZE_MAX / 2);
    json_bulk_find(bulk, text, len, long_enough);
    if (bulk->span_count && json_bulk_shorten(bulk, text, len)) {
        bulk->text = bulk->shorter.data;
        bulk->len = bulk->shorter.len;
    } else {
        bulk->span_count = 0;
    }
}

static void json_bulk_restore_string(const struct json_bulk *bulk, json_t *value)
{
    const char *text = json_string_value(value);
    const struct json_bulk_span *span;

    if (text[0] != '\1')
        return;
    span = &bulk->spans[strtoul(text + 1, NULL, 10)];
    json_string_setn_nocheck(value, span->at, span->len);
}

/* Recursion: as deep as JSON_DEPTH_MAX. */
static void json_bulk_restore_value(const struct json_bulk *bulk, json_t *value)
{
    if (json_is_string(value)) {
        json_bulk_restore_string(bulk, value);
    } else if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); i++)
            json_bulk_restore_value(bulk, json_array_get(value, i));
    } else if (json_is_object(value)) {
        for (void *i = json_object_iter(value); i; i = json_object_iter_next(value, i))
            json_bulk_restore_value(bulk, json_object_iter_value(i));
    }
}

void json_bulk_restore(const struct json_bulk *bulk, json_t *value)
{
    if (bulk->span_count)
        json_bulk_restore_value(bulk, value);
}

void json_bulk_done(struct json_bulk *bulk)
{
    buf_done(&bulk->shorter);
    free(bulk->spans);
    *bulk = (struct json_bulk){0};
}
