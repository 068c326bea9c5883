/* See schema.h. The messages are those of the original, for clients and people that know them; what
 * they lack, the JSON path, goes beside them. The tables are finite trees made at build time, so
 * the recursion is as deep as a schema file is nested. */
#include "server/schema.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>

enum { QUOTED_MAX = 100 }; /* characters of a client's text in a message */

static int fail_at(const struct json_at *at, char **ret_path)
{
    *ret_path = json_at_path(at);
    return -1;
}

/* What stands there, as the original calls it. */
static void describe(const json_t *value, char *ret, size_t size)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        snprintf(ret, size, "map");
        break;
    case JSON_ARRAY:
        snprintf(ret, size, "sequence");
        break;
    case JSON_STRING:
        snprintf(ret, size, "string \"%.*s\"", QUOTED_MAX, json_string_value(value));
        break;
    case JSON_INTEGER:
    case JSON_REAL:
        snprintf(ret, size, "number");
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        snprintf(ret, size, "boolean `%s`", json_is_true(value) ? "true" : "false");
        break;
    case JSON_NULL:
        snprintf(ret, size, "null");
        break;
    }
}

static int fail_type(const struct schema *schema, const struct json_at *at, char **ret_path,
                     struct err *err)
{
    static const char *const expected[] = {
        [SCHEMA_ANY] = "anything",       [SCHEMA_STRING] = "a string",
        [SCHEMA_INTEGER] = "an integer", [SCHEMA_BOOLEAN] = "a boolean",
        [SCHEMA_OBJECT] = "a map",       [SCHEMA_ARRAY] = "a sequence",
        [SCHEMA_MAP] = "a map",
    };
    char found[QUOTED_MAX + 16];

    describe(at->value, found, sizeof found);
    if (schema->type == SCHEMA_OBJECT && schema->name)
        err_set(err, ERR_INVALID, "invalid type: %s, expected struct %s", found, schema->name);
    else
        err_set(err, ERR_INVALID, "invalid type: %s, expected %s", found, expected[schema->type]);
    return fail_at(at, ret_path);
}

static const char *name_of(const struct json_at *at)
{
    return at->key ? at->key : "the value";
}

static void append_words(struct buf *text, const char *const *words)
{
    bool is_pair = words[1] && !words[2];

    buf_append_str(text, words[1] && !is_pair ? "one of " : "");
    for (size_t i = 0; words[i]; i++)
        buf_appendf(text, "%s`%s`", i == 0 ? "" : is_pair ? " or " : ", ", words[i]);
}

static int check_words(const struct schema *schema, const struct json_at *at, char **ret_path,
                       struct err *err)
{
    const char *text = json_string_value(at->value);
    AUTO(buf_done) struct buf list = {0};

    for (const char *const *word = schema->words; *word; word++)
        if (str_eq(*word, text))
            return 0;
    buf_init(&list, sizeof err->msg);
    append_words(&list, schema->words);
    err_set(err, ERR_INVALID, "unknown variant `%.*s`, expected %s", QUOTED_MAX, text, list.data);
    return fail_at(at, ret_path);
}

static int check_string(const struct schema *schema, const struct json_at *at, char **ret_path,
                        struct err *err)
{
    int64_t len = (int64_t)json_string_length(at->value);

    if (schema->words)
        return check_words(schema, at, ret_path, err);
    if (len >= schema->min && len <= schema->max)
        return 0;
    if (len == 0)
        err_set(err, ERR_INVALID, "%s must not be empty", name_of(at));
    else
        err_set(err, ERR_INVALID, "%s must not exceed %" PRId64 " bytes", name_of(at), schema->max);
    return fail_at(at, ret_path);
}

static int check_integer(const struct schema *schema, const struct json_at *at, char **ret_path,
                         struct err *err)
{
    int64_t number = json_integer_value(at->value);

    if (number >= schema->min && number <= schema->max)
        return 0;
    if (number < 0 && schema->min >= 0)
        err_set(err, ERR_INVALID, "invalid number");
    else
        err_set(err, ERR_INVALID, "%s must be between %" PRId64 " and %" PRId64, name_of(at),
                schema->min, schema->max);
    return fail_at(at, ret_path);
}

static int check_array(const struct schema *schema, const struct json_at *at, char **ret_path,
                       struct err *err)
{
    size_t len = json_array_size(at->value);

    if ((int64_t)len < schema->min) {
        err_set(err, ERR_INVALID, "%s must not be empty", name_of(at));
        return fail_at(at, ret_path);
    }
    for (size_t i = 0; schema->items && i < len; i++) {
        struct json_at item = json_at_item(at, i);

        if (schema_read(schema->items, &item, NULL, ret_path, err))
            return -1;
    }
    return 0;
}

static int check_map(const struct schema *schema, const struct json_at *at, char **ret_path,
                     struct err *err)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)at->value, key, value)
    {
        struct json_at item = json_at_field(at, key);

        if (schema->items && schema_read(schema->items, &item, NULL, ret_path, err))
            return -1;
    }
    return 0;
}

static int check_field(const struct schema_field *field, const struct json_at *object,
                       char **ret_path, struct err *err)
{
    struct json_at at = json_at_field(object, field->name);

    if (at.value && !(json_is_null(at.value) && field->need == SCHEMA_NULLABLE))
        return schema_read(field->schema, &at, NULL, ret_path, err);
    if (at.value || field->need != SCHEMA_REQUIRED)
        return 0;
    err_set(err, ERR_INVALID, "missing field `%s`", field->name);
    return fail_at(&at, ret_path);
}

/* `value`: NULL when it is not given. */
static void fill(const struct schema_field *field, const json_t *value, char *ret)
{
    void *slot = ret + field->at;
    void *len = ret + field->len_at;

    switch (field->schema->type) {
    case SCHEMA_STRING:
        *(const char **)slot = json_string_value(value);
        if (field->len_at)
            *(size_t *)len = json_string_length(value);
        break;
    case SCHEMA_INTEGER:
        *(int64_t *)slot = json_is_integer(value) ? json_integer_value(value) : field->otherwise;
        break;
    case SCHEMA_BOOLEAN:
        *(bool *)slot = json_is_boolean(value) ? json_is_true(value) : field->otherwise;
        break;
    case SCHEMA_OBJECT:
    case SCHEMA_ARRAY:
    case SCHEMA_MAP:
        *(const json_t **)slot = json_is_null(value) ? NULL : value;
        break;
    case SCHEMA_ANY:
        *(const json_t **)slot = value;
        break;
    }
}

static int read_object(const struct schema *schema, const struct json_at *at, void *ret,
                       char **ret_path, struct err *err)
{
    for (const struct schema_field *field = schema->fields; field && field->name; field++) {
        if (check_field(field, at, ret_path, err))
            return -1;
        if (ret)
            fill(field, json_object_get(at->value, field->name), ret);
    }
    return 0;
}

int schema_read(const struct schema *schema, const struct json_at *at, void *ret, char **ret_path,
                struct err *err)
{
    const json_t *value = at->value;

    switch (schema->type) {
    case SCHEMA_ANY:
        return 0;
    case SCHEMA_STRING:
        if (json_is_string(value))
            return check_string(schema, at, ret_path, err);
        break;
    case SCHEMA_INTEGER:
        if (json_is_integer(value))
            return check_integer(schema, at, ret_path, err);
        break;
    case SCHEMA_BOOLEAN:
        if (json_is_boolean(value))
            return 0;
        break;
    case SCHEMA_OBJECT:
        if (json_is_object(value))
            return read_object(schema, at, ret, ret_path, err);
        break;
    case SCHEMA_ARRAY:
        if (json_is_array(value))
            return check_array(schema, at, ret_path, err);
        break;
    case SCHEMA_MAP:
        if (json_is_object(value))
            return check_map(schema, at, ret_path, err);
        break;
    }
    return fail_type(schema, at, ret_path, err);
}
