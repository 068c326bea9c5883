/* What a value on the wire has to look like, as constant tables that scripts/schema makes, and the
 * one function that holds a value against them. Unknown fields are ignored, whatever they are. */
#pragma once

#include "base/err.h"
#include "base/json.h"

#include <stdint.h>

enum shape_type {
    SHAPE_ANY,
    SHAPE_STRING,
    SHAPE_INTEGER,
    SHAPE_BOOLEAN,
    SHAPE_OBJECT,
    SHAPE_ARRAY,
    SHAPE_MAP, /* an object with keys of any name */
};

enum shape_need {
    SHAPE_REQUIRED,
    SHAPE_OPTIONAL, /* may be missing */
    SHAPE_NULLABLE, /* or null */
};

struct shape_field {
    const char *name; /* NULL ends the table */
    enum shape_need need;
    const struct shape *shape;
};

struct shape {
    enum shape_type type;
    const char *name; /* of an object, in messages; NULL: none */
    int64_t min;      /* of an integer; bytes of a text; items of an array */
    int64_t max;
    const char *const *words;         /* the only texts, NULL-terminated; NULL: any */
    const struct shape *items;        /* of an array or map; NULL: any */
    const struct shape_field *fields; /* of an object; NULL: none */
};

/* ERR_INVALID in the words of the original (spec/wire-samples); where it is comes as a JSON path
 * in `*ret_path`, which the caller frees. The nesting is that of the tables. */
int shape_check(const struct shape *shape, const struct json_at *at, char **ret_path,
                struct err *err);
