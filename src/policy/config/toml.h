/* A TOML 1.0 document as a tree of plain C values with line numbers. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum toml_kind {
    TOML_TABLE,
    TOML_ARRAY,
    TOML_STRING,
    TOML_INTEGER,
    TOML_BOOLEAN,
    TOML_OTHER, /* floating point, dates and times: nothing here reads them */
};

struct toml_node {
    enum toml_kind kind;
    unsigned line; /* of the key; in an array, of the value; from 1 */
    char *key;     /* NULL in an array, and at the root */
    char *string;
    int64_t integer;
    bool boolean;
    struct toml_node *items; /* of a table (in the order of the text) or an array */
    size_t len;
    int origin; /* of the parser alone: how it was defined */
};

enum {
    TOML_DEPTH_MAX = 32,     /* nested arrays and inline tables */
    TOML_KEY_PARTS_MAX = 32, /* parts of one dotted key or table name */
};

/* NULL on failure: ERR_INVALID, the message starts with "LINE:COLUMN: ". A NUL in a key or a string
 * is an error, so C strings hold everything. The size of the text is for the caller to bound. */
struct toml_node *toml_parse(const char *text, size_t len, struct err *err);
void toml_free(struct toml_node *root);

/* The item of a table with that key; NULL when there is none, or `table` is NULL or no table. */
const struct toml_node *toml_find(const struct toml_node *table, const char *key);

const char *toml_kind_name(enum toml_kind kind); /* "a table", "a string", ... */
