/* See result_text.h. An output is read in pieces; what a piece ends in the middle of, a character or three bytes of
 * base64, waits for the next one. jansson has no value that is not in memory, so the document is walked here,
 * and jansson writes what has nothing below it. */
#include "job/result_text.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"
#include "output/headtail.h"
#include "output/output.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* --- an output, in pieces --- */

enum { PIECE = 16384 };

struct reading {
    bool is_base64;
    json_dump_callback_t take; /* NULL: it is only looked at */
    void *data;
    struct buf waiting;
    bool is_valid; /* by now */
};

static void reading_done(struct reading *reading)
{
    buf_done(&reading->waiting);
}

/* Hands on what waits, but for what may become whole with what follows. */
static int hand_on(struct reading *reading, bool is_end)
{
    struct buf *waiting = &reading->waiting;
    AUTO(buf_done) struct buf piece = {.max = SIZE_MAX / 2};
    size_t len = waiting->len;

    if (len && !is_end)
        len -= reading->is_base64 ? len % 3 : utf8_torn_len(waiting->data, len);
    if (!len)
        return 0;
    if (reading->is_base64) {
        base64_encode(waiting->data, len, buf_extend(&piece, base64_encoded_len(len)));
    } else {
        reading->is_valid &= utf8_is_valid(waiting->data, len);
        utf8_append_lossy(&piece, waiting->data, len);
    }
    buf_consume(waiting, len);
    return reading->take ? reading->take(piece.data, piece.len, reading->data) : 0;
}

static int read_range(struct reading *reading, struct output *output, uint64_t from, uint64_t to)
{
    char bytes[PIECE];

    while (from < to) {
        size_t len = to - from < PIECE ? (size_t)(to - from) : PIECE;

        len = output_copy(output, from, bytes, len);
        if (!len)
            return -1;
        buf_append(&reading->waiting, bytes, len);
        if (hand_on(reading, false))
            return -1;
        from += len;
    }
    return 0;
}

static int read_output(struct reading *reading, struct output *output)
{
    struct output_info info;
    int status = 0;

    output_info(output, &info);
    if (read_range(reading, output, 0, info.prefix_end))
        return -1;
    if (info.prefix_end < info.tail_start && !reading->is_base64) {
        status = hand_on(reading, true);
        buf_appendf(&reading->waiting, "\n" HEADTAIL_MARKER "\n",
                    info.tail_start - info.prefix_end);
    }
    return status || read_range(reading, output, info.tail_start, info.total) ||
                   hand_on(reading, true)
               ? -1
               : 0;
}

bool result_text_is_valid(struct output *output)
{
    AUTO(reading_done)
    struct reading reading = {.waiting = {.max = SIZE_MAX / 2}, .is_valid = true};

    return read_output(&reading, output) == 0 && reading.is_valid;
}

/* --- in a document --- */

static int collect(const char *text, size_t len, void *data)
{
    return buf_append(data, text, len) ? 0 : -1;
}

json_t *result_text(struct result_texts *texts, struct output *output, bool is_base64)
{
    AUTO(buf_done) struct buf whole = {.max = SIZE_MAX / 2};
    AUTO(reading_done)
    struct reading reading = {
        .is_base64 = is_base64, .take = collect, .data = &whole, .waiting = {.max = SIZE_MAX / 2}};
    json_t *place;

    if (!texts) {
        (void)read_output(&reading, output); /* of a spool that fails: what there was before */
        return json_stringn(whole.data ? whole.data : "", whole.len);
    }
    place = json_string("");
    texts->items = alloc_grow(texts->items, texts->len, &texts->cap, sizeof *texts->items);
    texts->items[texts->len++] =
        (struct result_text){.place = place, .output = output, .is_base64 = is_base64};
    return place;
}

void result_texts_done(struct result_texts *texts)
{
    free(texts->items);
    *texts = (struct result_texts){.len = 0};
}

/* --- writing --- */

struct dump {
    const struct result_texts *texts;
    size_t flags;
    json_dump_callback_t write;
    void *data;
};

static int put(const struct dump *dump, const char *text)
{
    return dump->write(text, strlen(text), dump->data);
}

static int put_line(const struct dump *dump, unsigned depth)
{
    int status = put(dump, "\n");

    while (!status && depth--)
        status = put(dump, "  ");
    return status;
}

/* Without its quotes. */
static int put_escaped(const char *text, size_t len, void *data)
{
    const struct dump *dump = data;
    AUTO_JSON json_t *value = json_stringn(text, len);
    AUTO_FREE char *quoted = json_dumps(value, dump->flags | JSON_ENCODE_ANY);

    return dump->write(quoted + 1, strlen(quoted) - 2, dump->data);
}

static int put_text(struct dump *dump, const struct result_text *text)
{
    AUTO(reading_done)
    struct reading reading = {.is_base64 = text->is_base64,
                              .take = put_escaped,
                              .data = dump,
                              .waiting = {.max = SIZE_MAX / 2}};

    return put(dump, "\"") || read_output(&reading, text->output) || put(dump, "\"") ? -1 : 0;
}

static int put_value(struct dump *dump, const json_t *value, unsigned depth)
{
    const bool is_object = json_is_object(value);
    const char *key = "";
    const json_t *item;
    size_t len = is_object ? json_object_size(value) : json_array_size(value);
    size_t i = 0;
    int status;

    for (size_t k = 0; json_is_string(value) && k < dump->texts->len; k++)
        if (dump->texts->items[k].place == value)
            return put_text(dump, &dump->texts->items[k]);
    if (!len)
        return json_dump_callback(value, dump->write, dump->data, dump->flags | JSON_ENCODE_ANY);
    status = put(dump, is_object ? "{" : "[");
    for (void *at = is_object ? json_object_iter((json_t *)value) : NULL; !status && i < len; i++) {
        item = is_object ? json_object_iter_value(at) : json_array_get(value, i);
        status = put_line(dump, depth + 1);
        if (is_object) {
            key = json_object_iter_key(at);
            at = json_object_iter_next((json_t *)value, at);
            status = status || put(dump, "\"") || put_escaped(key, strlen(key), dump) ||
                     put(dump, "\": ");
        }
        status = status || put_value(dump, item, depth + 1) || (i + 1 < len && put(dump, ","));
    }
    return status || put_line(dump, depth) || put(dump, is_object ? "}" : "]") ? -1 : 0;
}

int result_texts_dump(const json_t *document, const struct result_texts *texts, size_t flags,
                      json_dump_callback_t write, void *data)
{
    struct dump dump = {.texts = texts, .flags = flags, .write = write, .data = data};

    return put_value(&dump, document, 0);
}
