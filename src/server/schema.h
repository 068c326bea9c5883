/* What a value on the wire has to look like, as constant tables that scripts/schema makes, and the
 * one function that holds a value against them. Unknown fields are ignored, whatever they are. */
#pragma once

#include "base/err.h"
#include "base/json.h"

#include <stdint.h>

enum schema_type {
    SCHEMA_ANY,
    SCHEMA_STRING,
    SCHEMA_INTEGER,
    SCHEMA_BOOLEAN,
    SCHEMA_OBJECT,
    SCHEMA_ARRAY,
    SCHEMA_MAP, /* an object with keys of any name */
};

enum schema_need {
    SCHEMA_REQUIRED,
    SCHEMA_OPTIONAL, /* may be missing */
    SCHEMA_NULLABLE, /* or null */
};

struct schema_field {
    const char *name; /* NULL ends the table */
    enum schema_need need;
    const struct schema *schema;
};

struct schema {
    enum schema_type type;
    const char *name; /* of an object, in messages; NULL: none */
    int64_t min;      /* of an integer; bytes of a text; items of an array */
    int64_t max;
    const char *const *words;          /* the only texts, NULL-terminated; NULL: any */
    const struct schema *items;        /* of an array or map; NULL: any */
    const struct schema_field *fields; /* of an object; NULL: none */
};

/* ERR_INVALID in the words of the original (spec/wire-samples); where it is comes as a JSON path
 * in `*ret_path`, which the caller frees. The nesting is that of the tables. */
int schema_check(const struct schema *schema, const struct json_at *at, char **ret_path,
                 struct err *err);
