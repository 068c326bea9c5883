/* What a value on the wire has to look like, as constant tables that scripts/schema makes, and the
 * one function that holds a value against them and reads it. Unknown fields are ignored, whatever
 * they are. */
#pragma once

#include "base/err.h"
#include "base/json.h"

#include <stddef.h>
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
    size_t at;         /* where its value goes in the struct of a method's parameters */
    size_t len_at;     /* of a text that can hold NUL bytes: where its length goes; 0: nowhere */
    int64_t otherwise; /* a number or flag that is not given */
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

/* ERR_INVALID in the words of the original; where it is comes as a JSON path in `*ret_path`, which
 * the caller frees. The nesting is that of the tables.
 *
 * `ret` takes the values of the schema's own fields, as they lie in its struct (methods.gen.h), and
 * borrows from the value; it makes no sense after a failure. NULL: the value is only checked. */
int schema_read(const struct schema *schema, const struct json_at *at, void *ret, char **ret_path,
                struct err *err);
