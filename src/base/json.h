/* Reading JSON of others: jansson parses, and these helpers say where a value is
 * when it is not what it should be ("$.file_system.entries[2].access: should be a string").
 *
 *     json_t *root = json_parse(text, len, err);
 *     struct json_at at = json_at_root(root);
 *     struct json_at access = json_at_field(&at, "access");
 *     if (json_at_string(&access, &word, err)) ...
 *
 * A json_at borrows the value and the json_at above it; both have to outlive it. */
#pragma once

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct strv;

enum { JSON_DEPTH_MAX = 128 }; /* nested arrays and objects */

/* A whole document: one value of any type, no key twice, nothing behind it, no NUL in any text,
 * nested at most JSON_DEPTH_MAX deep. New reference; NULL on failure, the message then starts with
 * "line L, column C: ". */
json_t *json_parse(const char *text, size_t len, struct err *err);

/* The same, and texts may hold NUL: for who takes their lengths. */
json_t *json_parse_nul(const char *text, size_t len, struct err *err);

/* A string value for a text of any bytes: ill-formed UTF-8 becomes U+FFFD; NULL becomes null. New
 * reference. */
json_t *json_lossy(const char *text);

/* The same as `key` of the object; and where it is no UTF-8, its bytes as `base64_key`. */
void json_set_path(json_t *object, const char *key, const char *base64_key, const char *path);

/* The same of a list of them, NULL-terminated: where one is no UTF-8, `base64_key` has the bytes of all. */
void json_set_paths(json_t *object, const char *key, const char *base64_key, char *const *paths);

/* An array of such texts; `texts` is NULL-terminated. */
json_t *json_lossy_list(char *const *texts);

static inline void json_auto(json_t **slot)
{
    json_decref(*slot);
}
#define AUTO_JSON __attribute__((cleanup(json_auto)))

/* A value and the way to it. */
struct json_at {
    const struct json_at *up; /* NULL at the root */
    const json_t *value;      /* NULL: missing */
    const char *key;          /* in an object; NULL otherwise */
    size_t index;             /* in an array */
};

struct json_at json_at_root(const json_t *value);

/* A missing key, and one of something that is no object, gives a missing value. */
struct json_at json_at_field(const struct json_at *object, const char *key);
struct json_at json_at_item(const struct json_at *array, size_t index);

/* There, and not null. */
bool json_at_is_given(const struct json_at *at);

/* "$.a.b[2]"; keys that are no plain word are quoted: "$[\"a b\"]". Caller frees. */
char *json_at_path(const struct json_at *at);

/* ERR_INVALID with "<path>: " in front; returns -1. */
int json_at_fail(const struct json_at *at, struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Each fails when the value is missing or of another type. */
int json_at_object(const struct json_at *at, struct err *err);
int json_at_array(const struct json_at *at, size_t *ret_len, struct err *err);
int json_at_string(const struct json_at *at, const char **ret, struct err *err); /* borrowed */
int json_at_bool(const struct json_at *at, bool *ret, struct err *err);
int json_at_integer(const struct json_at *at, int64_t min, int64_t max, int64_t *ret,
                    struct err *err);

/* An array that may be missing: then it has no items. */
int json_at_list(const struct json_at *at, size_t *ret_len, struct err *err);

/* Adds the items of a list of strings; one that is missing has none. */
int json_at_strings(const struct json_at *object, const char *key, struct strv *ret,
                    struct err *err);

/* The index of the value, a string, in the NULL-terminated `words`; others fail, the message then
 * lists the words. */
int json_at_word(const struct json_at *at, const char *const *words, size_t *ret, struct err *err);

/* Every key of the object has to be one of the NULL-terminated `known`. An unknown one fails, the
 * message names the known key that is nearest; with `ignored` its path is appended there instead.
 */
int json_at_check_keys(const struct json_at *at, const char *const *known, struct strv *ignored,
                       struct err *err);
