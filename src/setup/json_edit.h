/* Changing one entry of a JSON text that people keep, comments and trailing commas (JSONC) included: all bytes around
 * the entry stay as they are.
 *
 *     static const char *const keys[] = {"mcpServers", "cordon", NULL};
 *     const struct json_place place = {.keys = keys};
 *     json_edit_put(text, len, &place, value, &changed, err);
 *
 * Texts that are no JSON, that have a key twice, or whose root is no object, fail with the line and column. */
#pragma once

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct buf;

struct json_place {
    const char *const *keys; /* from the root; NULL-terminated, at least one */
    /* NULL: what the last key names. Else that is an array, and what is meant is the first of its items of which this is
     * true. */
    bool (*is_item)(const json_t *item);
};

/* The text as a value; new reference. Of a text of nothing but white space and comments an empty object. */
json_t *json_edit_parse(const char *text, size_t len, struct err *err);

/* What is at the place; borrowed, NULL: nothing. */
json_t *json_edit_find(const json_t *root, const struct json_place *place);

/* Appends the text with `value` at the place: in the place of what is there, or as the last of its neighbours, with
 * the objects and the array on the way that are missing. The same text when that value is there already. ERR_INVALID
 * also when something on the way is no object, or at its end no array. */
int json_edit_put(const char *text, size_t len, const struct json_place *place, const json_t *value,
                  struct buf *ret, struct err *err);

/* Appends the text without what is at the place, and, when `prunes`, without what is empty then on the way to it. */
int json_edit_remove(const char *text, size_t len, const struct json_place *place, bool prunes,
                     struct buf *ret, struct err *err);
