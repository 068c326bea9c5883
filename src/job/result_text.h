/* The retained output of commands in the JSON of their results. It may be far larger than memory should be, so in a
 * document there can be an empty string in its place, and the output is read when the document is written:
 *
 *     struct result_texts texts = {0};
 *     result_to_json(&result, &texts)           or NULL: the texts are in the document
 *     result_texts_dump(json, &texts, ...)      while the outputs are there still
 *     result_texts_done(&texts) */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct output;

struct result_text {
    const json_t *place; /* known by its address, so it is borrowed of a document that is there */
    struct output *output;
    bool is_base64; /* of the retained bytes; else their text, with a line for what is omitted */
};

struct result_texts {
    struct result_text *items;
    size_t len;
    size_t cap;
};

/* The string for the document: a new reference. `texts` NULL: the text itself. */
json_t *result_text(struct result_texts *texts, struct output *output, bool is_base64);
void result_texts_done(struct result_texts *texts);

/* What is retained, of each side of a gap, is valid UTF-8. */
bool result_text_is_valid(struct output *output);

/* As json_dump_callback(3) with JSON_INDENT(2); `flags`: JSON_ENSURE_ASCII or 0. -1 when `write` fails, or when a
 * spool cannot be read any more. */
int result_texts_dump(const json_t *document, const struct result_texts *texts, size_t flags,
                      json_dump_callback_t write, void *data);
