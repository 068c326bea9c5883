/* See json.h.
 *
 * The one idea: a json_at is a linked list on the stack that runs from a value up to the root, so
 * that carrying positions along costs nothing, and the path becomes text only when something is
 * wrong. Depth is checked on the text before jansson sees it, because parsing, walking and freeing
 * are all recursive there. */
#include "base/json.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

enum { PATH_TEXT_MAX = 4096 };

/* Where `offset` is in the text, counted from 1. */
static void json_position(const char *text, size_t offset, int *ret_line, int *ret_column)
{
    int line = 1;
    int column = 1;

    for (size_t i = 0; i < offset; i++) {
        column++;
        if (text[i] == '\n') {
            line++;
            column = 1;
        }
    }
    *ret_line = line;
    *ret_column = column;
}

/* What counts is brackets outside of strings; whether they match is the parser's business. */
static int json_check_depth(const char *text, size_t len, struct err *err)
{
    int depth = 0;
    bool in_string = false;

    for (size_t i = 0; i < len; i++) {
        if (in_string && text[i] == '\\') {
            i++;
        } else if (text[i] == '"') {
            in_string = !in_string;
        } else if (!in_string && (text[i] == '[' || text[i] == '{')) {
            if (++depth > JSON_DEPTH_MAX) {
                int line;
                int column;

                json_position(text, i, &line, &column);
                return err_set(err, ERR_INVALID, "line %d, column %d: nested deeper than %d levels",
                               line, column, JSON_DEPTH_MAX);
            }
        } else if (!in_string && (text[i] == ']' || text[i] == '}')) {
            depth--;
        }
    }
    return 0;
}

/* jansson's own words name its flags, or do not say which bound it is. */
static const char *json_reason(const json_error_t *error)
{
    enum json_error_code code = json_error_code(error);

    if (code == json_error_null_character || code == json_error_null_byte_in_key)
        return "a text has a NUL character (\\u0000)";
    if (code == json_error_numeric_overflow)
        return "a number does not fit into 64 bits";
    return error->text;
}

static json_t *parse_with(const char *text, size_t len, size_t flags, struct err *err)
{
    json_error_t error;
    json_t *value;

    if (json_check_depth(text, len, err))
        return NULL;
    value = json_loadb(text, len, flags | JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (!value)
        err_set(err, ERR_INVALID, "line %d, column %d: %s", error.line, error.column,
                json_reason(&error));
    return value;
}

json_t *json_parse(const char *text, size_t len, struct err *err)
{
    return parse_with(text, len, 0, err);
}

json_t *json_parse_nul(const char *text, size_t len, struct err *err)
{
    return parse_with(text, len, JSON_ALLOW_NUL, err);
}

json_t *json_lossy(const char *text)
{
    AUTO(buf_done) struct buf valid = {0};

    if (!text)
        return json_null();
    buf_init(&valid, SIZE_MAX / 2);
    utf8_append_lossy(&valid, text, strlen(text));
    return json_stringn(valid.data ? valid.data : "", valid.len);
}

json_t *json_lossy_list(char *const *texts)
{
    json_t *list = json_array();

    for (; *texts; texts++)
        json_array_append_new(list, json_lossy(*texts));
    return list;
}

static json_t *base64_of(const char *path)
{
    size_t len = strlen(path);
    AUTO_FREE char *text = alloc_zero(base64_encoded_len(len) + 1, 1);

    base64_encode(path, len, text);
    return json_string(text);
}

void json_set_path(json_t *object, const char *key, const char *base64_key, const char *path)
{
    json_object_set_new(object, key, json_lossy(path));
    if (!utf8_is_valid(path, strlen(path)))
        json_object_set_new(object, base64_key, base64_of(path));
}

void json_set_paths(json_t *object, const char *key, const char *base64_key, char *const *paths)
{
    json_t *list = json_array();
    bool is_text = true;

    for (size_t i = 0; paths[i]; i++) {
        is_text = is_text && utf8_is_valid(paths[i], strlen(paths[i]));
        json_array_append_new(list, base64_of(paths[i]));
    }
    json_object_set_new(object, key, json_lossy_list(paths));
    if (is_text)
        json_decref(list);
    else
        json_object_set_new(object, base64_key, list);
}

struct json_at json_at_root(const json_t *value)
{
    return (struct json_at){.value = value};
}

struct json_at json_at_field(const struct json_at *object, const char *key)
{
    return (struct json_at){.up = object, .value = json_object_get(object->value, key), .key = key};
}

struct json_at json_at_item(const struct json_at *array, size_t index)
{
    return (struct json_at){
        .up = array, .value = json_array_get(array->value, index), .index = index};
}

bool json_at_is_given(const struct json_at *at)
{
    return at->value && !json_is_null(at->value);
}

/* The list runs upwards, the text downwards. Its length is bounded by the depth of the document. */
char *json_at_path(const struct json_at *at)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    const struct json_at *steps[JSON_DEPTH_MAX + 2];
    size_t len = 0;
    AUTO(buf_done) struct buf path = {0};

    buf_init(&path, PATH_TEXT_MAX);
    for (; at && len < sizeof steps / sizeof *steps; at = at->up)
        steps[len++] = at;
    while (len) {
        at = steps[--len];
        if (!at->up)
            buf_append_str(&path, "$");
        else if (!at->key)
            buf_appendf(&path, "[%zu]", at->index);
        else if (*at->key && !at->key[strspn(at->key, plain)])
            buf_appendf(&path, ".%s", at->key);
        else
            buf_appendf(&path, "[\"%.64s\"]", at->key);
    }
    return buf_take(&path);
}

int json_at_fail(const struct json_at *at, struct err *err, const char *fmt, ...)
{
    AUTO_FREE char *path = json_at_path(at);
    AUTO_FREE char *text = NULL;
    va_list args;

    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        text = NULL;
    va_end(args);
    return err_set(err, ERR_INVALID, "%s: %s", path, text ? text : fmt);
}

static int json_at_mistyped(const struct json_at *at, const char *wanted, struct err *err)
{
    return json_at_fail(at, err, "%s, should be %s", at->value ? "has the wrong type" : "missing",
                        wanted);
}

int json_at_object(const struct json_at *at, struct err *err)
{
    if (!json_is_object(at->value))
        return json_at_mistyped(at, "an object", err);
    return 0;
}

int json_at_array(const struct json_at *at, size_t *ret_len, struct err *err)
{
    if (!json_is_array(at->value))
        return json_at_mistyped(at, "an array", err);
    *ret_len = json_array_size(at->value);
    return 0;
}

int json_at_list(const struct json_at *at, size_t *ret_len, struct err *err)
{
    *ret_len = 0;
    return json_at_is_given(at) ? json_at_array(at, ret_len, err) : 0;
}

int json_at_string(const struct json_at *at, const char **ret, struct err *err)
{
    if (!json_is_string(at->value))
        return json_at_mistyped(at, "a string", err);
    *ret = json_string_value(at->value);
    return 0;
}

int json_at_bool(const struct json_at *at, bool *ret, struct err *err)
{
    if (!json_is_boolean(at->value))
        return json_at_mistyped(at, "true or false", err);
    *ret = json_is_true(at->value);
    return 0;
}

int json_at_integer(const struct json_at *at, int64_t min, int64_t max, int64_t *ret,
                    struct err *err)
{
    int64_t value = json_integer_value(at->value);

    if (!json_is_integer(at->value))
        return json_at_mistyped(at, "a whole number", err);
    if (value < min || value > max)
        return json_at_fail(at, err, "%" PRId64 " is not between %" PRId64 " and %" PRId64, value,
                            min, max);
    *ret = value;
    return 0;
}

int json_at_word(const struct json_at *at, const char *const *words, size_t *ret, struct err *err)
{
    AUTO(buf_done) struct buf list = {.max = PATH_TEXT_MAX};
    const char *text = NULL;

    if (json_at_string(at, &text, err))
        return -1;
    for (size_t i = 0; words[i]; i++) {
        if (str_eq(words[i], text)) {
            *ret = i;
            return 0;
        }
        buf_appendf(&list, "%s\"%s\"", i ? ", " : "", words[i]);
    }
    return json_at_fail(at, err, "\"%.40s\" is not one of %s", text, list.data ? list.data : "");
}

int json_at_check_keys(const struct json_at *at, const char *const *known, struct strv *ignored,
                       struct err *err)
{
    json_t *object = (json_t *)at->value; /* jansson's iterators are not const; nothing changes */

    for (void *iter = json_object_iter(object); iter; iter = json_object_iter_next(object, iter)) {
        struct json_at field = json_at_field(at, json_object_iter_key(iter));
        size_t i = 0;

        while (known[i] && !str_eq(known[i], field.key))
            i++;
        if (known[i])
            continue;
        if (ignored) {
            strv_push_take(ignored, json_at_path(&field));
            continue;
        }
        if (str_nearest(field.key, known))
            return json_at_fail(&field, err, "unknown key, did you mean \"%s\"?",
                                str_nearest(field.key, known));
        return json_at_fail(&field, err, "unknown key");
    }
    return 0;
}

int json_at_strings(const struct json_at *object, const char *key, struct strv *ret,
                    struct err *err)
{
    struct json_at list = json_at_field(object, key);
    size_t len = 0;

    if (json_at_is_given(&list) && json_at_array(&list, &len, err))
        return -1;
    for (size_t i = 0; i < len; i++) {
        struct json_at item = json_at_item(&list, i);
        const char *text = NULL;

        if (json_at_string(&item, &text, err))
            return -1;
        strv_push(ret, text);
    }
    return 0;
}
