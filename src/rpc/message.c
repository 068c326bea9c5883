/* Reading: jansson parses; what is here is the shape: which of the four kinds it is,
 * and that the members which make it so have the right types. Params are not looked at, that is
 * the business of the code that knows the method.
 *
 * The number of values is counted before anything is parsed, because a message of the permitted
 * length full of "[],[],[]" would become gigabytes of json_t.
 *
 * jansson reads strings character by character, some 70 MB/s, and what clients send in bulk is
 * base64 inside of one string. So such strings are replaced by the text "\u0001N" before parsing,
 * and the N-th is copied into the finished value after. No other string can be taken for such a
 * mark: a text that has \u0001 anywhere is left alone (as a raw byte it is not allowed in JSON).
 * Keys stay.
 *
 * Writing goes straight into the caller's buffer. Values that exist as JSON go through jansson's
 * callback writer; texts and bytes that do not, never become any. */
#include "rpc/message.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- long strings --- */

static const char mark[] = "\\u0001";

/* Printable ASCII without a backslash; there is no quote in it. */
static bool is_plain(const char *text, size_t len)
{
    unsigned bad = 0;

    for (size_t i = 0; i < len; i++)
        bad |= (unsigned)((unsigned char)(text[i] - ' ') > '~' - ' ') | (text[i] == '\\');
    return !bad;
}

/* Whether what comes behind a string makes it a key. */
static bool is_key(const char *text, size_t len)
{
    size_t i = 0;

    while (i < len && strchr(" \t\r\n", text[i]) && text[i])
        i++;
    return i < len && text[i] == ':';
}

/* The closing quote of the string whose first byte is `text`; NULL when there is none.
 * `*ret_is_long`: it has at least `long_enough` bytes, all of them plain. */
static const char *string_end(const char *text, const char *end, size_t long_enough,
                              bool *ret_is_long)
{
    const char *quote = memchr(text, '"', (size_t)(end - text));
    size_t len = quote ? (size_t)(quote - text) : 0;

    *ret_is_long = quote && len >= long_enough && is_plain(text, len);
    if (!quote || *ret_is_long || !memchr(text, '\\', len))
        return quote;
    while (text < end && *text != '"')
        text += *text == '\\' && text + 1 < end ? 2 : 1;
    return text < end ? text : NULL;
}

static void json_bulk_find(struct json_bulk *bulk, const char *text, size_t len, size_t long_enough)
{
    const char *end = text + len;
    const char *at = text;

    while (at < end && (at = memchr(at, '"', (size_t)(end - at)))) {
        bool is_long;
        const char *close = string_end(++at, end, long_enough, &is_long);

        if (!close)
            return;
        if (is_long && !is_key(close + 1, (size_t)(end - close - 1))) {
            bulk->spans =
                alloc_grow(bulk->spans, bulk->span_count, &bulk->span_cap, sizeof *bulk->spans);
            bulk->spans[bulk->span_count++] = (struct json_bulk_span){at, (size_t)(close - at)};
        }
        at = close + 1;
    }
}

/* false when the text between the strings has something that looks like a mark. */
static bool json_bulk_shorten(struct json_bulk *bulk, const char *text, size_t len)
{
    const char *from = text;
    size_t left;

    for (size_t i = 0; i < bulk->span_count; i++) {
        const struct json_bulk_span *span = &bulk->spans[i];
        size_t gap = (size_t)(span->at - from);

        if (memmem(from, gap, mark, strlen(mark)))
            return false;
        buf_append(&bulk->shorter, from, gap);
        buf_appendf(&bulk->shorter, "%s%zu", mark, i);
        from = span->at + span->len;
    }
    left = len - (size_t)(from - text);
    if (memmem(from, left, mark, strlen(mark)))
        return false;
    buf_append(&bulk->shorter, from, left);
    return true;
}

void json_bulk_take(struct json_bulk *bulk, const char *text, size_t len, size_t long_enough)
{
    *bulk = (struct json_bulk){.text = text, .len = len};
    buf_init(&bulk->shorter, SIZE_MAX / 2);
    json_bulk_find(bulk, text, len, long_enough);
    if (bulk->span_count && json_bulk_shorten(bulk, text, len)) {
        bulk->text = bulk->shorter.data;
        bulk->len = bulk->shorter.len;
    } else {
        bulk->span_count = 0;
    }
}

/* Recursion: as deep as JSON_DEPTH_MAX. */
void json_bulk_restore(const struct json_bulk *bulk, json_t *value)
{
    const char *text = json_string_value(value);

    if (!bulk->span_count)
        return;
    if (text && *text == '\1') {
        const struct json_bulk_span *span = &bulk->spans[strtoul(text + 1, NULL, 10)];

        json_string_setn_nocheck(value, span->at, span->len);
    } else if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); i++)
            json_bulk_restore(bulk, json_array_get(value, i));
    } else if (json_is_object(value)) {
        for (void *i = json_object_iter(value); i; i = json_object_iter_next(value, i))
            json_bulk_restore(bulk, json_object_iter_value(i));
    }
}

void json_bulk_done(struct json_bulk *bulk)
{
    buf_done(&bulk->shorter);
    free(bulk->spans);
    *bulk = (struct json_bulk){0};
}

/* --- reading --- */

/* Values in well-formed JSON are one, and in each container that is not empty one more than it has
 * commas. Counts at most that for anything else; the parser says no to it anyway. */
static size_t message_count_values(const char *text, size_t len)
{
    size_t count = 1;
    bool in_string = false;
    bool is_opened = false; /* the last thing seen outside a string was an opening bracket */

    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
            continue;
        }
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
            continue;
        if (c == ',' || (is_opened && c != ']' && c != '}'))
            count++;
        is_opened = c == '[' || c == '{';
        in_string = c == '"';
    }
    return count;
}

/* W3C trace context; nothing here uses it, but a request with a wrong one is refused. */
static int message_check_trace(const struct json_at *root, struct err *err)
{
    static const char *const fields[] = {"traceparent", "tracestate"};
    struct json_at trace = json_at_field(root, "trace");

    if (!json_at_is_given(&trace))
        return 0;
    if (json_at_object(&trace, err))
        return -1;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        struct json_at field = json_at_field(&trace, fields[i]);
        const char *text;

        if (json_at_is_given(&field) && json_at_string(&field, &text, err))
            return -1;
    }
    return 0;
}

static int message_read_call(const struct json_at *root, struct rpc_message *message,
                             struct err *err)
{
    struct json_at method = json_at_field(root, "method");

    if (json_at_string(&method, &message->method, err))
        return -1;
    message->kind = message->id ? RPC_REQUEST : RPC_NOTIFICATION;
    message->params = json_object_get(root->value, "params");
    return message->id ? message_check_trace(root, err) : 0;
}

static int message_read_error(const struct json_at *root, struct rpc_message *message,
                              struct err *err)
{
    struct json_at error = json_at_field(root, "error");
    struct json_at code = json_at_field(&error, "code");
    struct json_at text = json_at_field(&error, "message");

    if (json_at_object(&error, err) ||
        json_at_integer(&code, INT64_MIN, INT64_MAX, &message->code, err) ||
        json_at_string(&text, &message->error_text, err))
        return -1;
    message->kind = RPC_ERROR;
    message->data = json_object_get(error.value, "data");
    return 0;
}

/* With both it is an error: what could be a no is none of the answers that permit something. */
static int message_read_answer(const struct json_at *root, struct rpc_message *message,
                               struct err *err)
{
    const json_t *result = json_object_get(root->value, "result");
    const json_t *error = json_object_get(root->value, "error");

    if (!message->id)
        return err_set(err, ERR_INVALID, "$: neither \"method\" nor \"id\" is there");
    if (error && !(result && json_is_null(error)))
        return message_read_error(root, message, err);
    if (!result)
        return err_set(err, ERR_INVALID, "$: none of \"method\", \"result\", \"error\" is there");
    message->kind = RPC_RESULT;
    message->result = result;
    return 0;
}

/* Without the long strings first; if that fails, all of it again, for the place of what is wrong.
 */
typedef json_t *json_parse_fn(const char *text, size_t len, struct err *err);

static json_t *parse_by(json_parse_fn *parse, const char *text, size_t len, struct err *err)
{
    AUTO(json_bulk_done) struct json_bulk bulk;
    json_t *root;

    json_bulk_take(&bulk, text, len, JSON_BULK_MIN);
    if (bulk.len / 2 >= RPC_VALUES_MAX && /* a value has at least one character and a comma */
        message_count_values(bulk.text, bulk.len) > RPC_VALUES_MAX) {
        err_set(err, ERR_INVALID, "more than %d values in one message", RPC_VALUES_MAX);
        return NULL;
    }
    root = parse(bulk.text, bulk.len, err);
    if (!root && bulk.span_count)
        return parse(text, len, err);
    json_bulk_restore(&bulk, root);
    return root;
}

json_t *rpc_json_parse(const char *text, size_t len, struct err *err)
{
    return parse_by(json_parse, text, len, err);
}

static int message_parse_by(json_parse_fn *parse, const char *text, size_t len,
                            struct rpc_message *ret, struct err *err)
{
    AUTO(rpc_message_done) struct rpc_message message = {0};
    struct json_at root;
    struct json_at id;

    message.root = parse_by(parse, text, len, err);
    if (!message.root)
        return -1;
    root = json_at_root(message.root);
    if (json_at_object(&root, err))
        return -1;
    id = json_at_field(&root, "id");
    if (id.value && !json_is_integer(id.value) && !json_is_string(id.value))
        return json_at_fail(&id, err, "should be a string or an integer of 64 bits");
    message.id = id.value;
    if (json_object_get(message.root, "method") ? message_read_call(&root, &message, err)
                                                : message_read_answer(&root, &message, err))
        return -1;
    *ret = rpc_message_take(&message);
    return 0;
}

int rpc_message_parse(const char *text, size_t len, struct rpc_message *ret, struct err *err)
{
    return message_parse_by(json_parse, text, len, ret, err);
}

int rpc_message_parse_nul(const char *text, size_t len, struct rpc_message *ret, struct err *err)
{
    return message_parse_by(json_parse_nul, text, len, ret, err);
}

void rpc_message_done(struct rpc_message *message)
{
    json_decref(message->root);
    *message = (struct rpc_message){0};
}

struct rpc_message rpc_message_take(struct rpc_message *message)
{
    struct rpc_message taken = *message;

    *message = (struct rpc_message){0};
    return taken;
}

/* --- whose it was, when it cannot be read --- */

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n'))
        at++;
    return at;
}

/* Behind the value that begins at `at`, by its quotes and brackets alone; NULL: it does not end. */
static const char *skip_value(const char *at, const char *end)
{
    size_t depth = 0;
    bool is_long;

    while (at < end) {
        if (!depth && strchr(",} \t\r\n", *at) && *at)
            return at;
        if (*at == '"') {
            at = string_end(at + 1, end, SIZE_MAX, &is_long);
            if (!at)
                return NULL;
        } else if (*at == '[' || *at == '{') {
            depth++;
        } else if ((*at == ']' || *at == '}') && !depth--) {
            return NULL;
        }
        at++;
        if (!depth && (at[-1] == '"' || at[-1] == ']' || at[-1] == '}'))
            return at;
    }
    return NULL;
}

/* The next member of an object; false at its end, or where there is none. */
static bool next_member(const char **at, const char *end, struct json_bulk_span *ret_key,
                        struct json_bulk_span *ret_value)
{
    const char *from = skip_blanks(*at, end);
    const char *to = from < end && *from == '"' ? skip_value(from, end) : NULL;

    if (!to)
        return false;
    *ret_key = (struct json_bulk_span){from, (size_t)(to - from)};
    from = skip_blanks(to, end);
    if (from == end || *from != ':')
        return false;
    from = skip_blanks(from + 1, end);
    to = skip_value(from, end);
    if (!to)
        return false;
    *ret_value = (struct json_bulk_span){from, (size_t)(to - from)};
    *at = skip_blanks(to, end);
    if (*at < end && **at == ',')
        ++*at;
    return true;
}

static bool span_is(const struct json_bulk_span *span, const char *text)
{
    return span->len == strlen(text) && memcmp(span->at, text, span->len) == 0;
}

json_t *rpc_message_find_id(const char *text, size_t len, bool *ret_is_request)
{
    const char *end = text + len;
    const char *at = skip_blanks(text, end);
    struct json_bulk_span key;
    struct json_bulk_span value;
    struct json_bulk_span id = {0};
    AUTO_JSON json_t *root = NULL;
    size_t ids = 0;
    json_t *found;
    struct err ignored; /* the caller had it before */

    *ret_is_request = false;
    if (at == end || *at++ != '{' || (root = rpc_json_parse(text, len, &ignored)))
        return NULL;
    while (next_member(&at, end, &key, &value)) {
        if (span_is(&key, "\"id\"")) {
            id = value;
            ids++;
        }
        *ret_is_request = *ret_is_request || span_is(&key, "\"method\"");
    }
    at = skip_blanks(at, end);
    if (ids != 1 || at == end || *at != '}' || skip_blanks(at + 1, end) != end)
        return NULL;
    found = strchr("[{", *id.at)
                ? NULL
                : json_loadb(id.at, id.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (json_is_integer(found) || json_is_string(found))
        return found;
    json_decref(found);
    return NULL;
}

/* --- writing --- */

static int text_write(const char *data, size_t len, void *buf)
{
    return buf_append(buf, data, len) ? 0 : -1;
}

bool rpc_text_json(struct buf *buf, const json_t *value)
{
    return json_dump_callback(value, text_write, buf, JSON_COMPACT | JSON_ENCODE_ANY) == 0;
}

static bool text_escape(struct buf *buf, unsigned char c)
{
    switch (c) {
    case '"':
        return buf_append_str(buf, "\\\"");
    case '\\':
        return buf_append_str(buf, "\\\\");
    case '\n':
        return buf_append_str(buf, "\\n");
    case '\r':
        return buf_append_str(buf, "\\r");
    case '\t':
        return buf_append_str(buf, "\\t");
    default:
        return buf_appendf(buf, "\\u%04x", c);
    }
}

static bool text_escape_all(struct buf *buf, const char *text, size_t len)
{
    while (len) {
        size_t plain = 0; /* bytes that need no escape (RFC 8259, 7) */

        while (plain < len && (unsigned char)text[plain] >= 0x20 && text[plain] != '"' &&
               text[plain] != '\\')
            plain++;
        if (!buf_append(buf, text, plain))
            return false;
        text += plain;
        len -= plain;
        if (!len)
            break;
        if (!text_escape(buf, (unsigned char)*text))
            return false;
        text++;
        len--;
    }
    return true;
}

bool rpc_text_string(struct buf *buf, const char *text, size_t len)
{
    AUTO(buf_done) struct buf valid = {0};

    if (!utf8_is_valid(text, len)) {
        buf_init(&valid, SIZE_MAX / 2);
        utf8_append_lossy(&valid, text, len);
        text = valid.data;
        len = valid.len;
    }
    return buf_append(buf, "\"", 1) && text_escape_all(buf, text, len) && buf_append(buf, "\"", 1);
}

bool rpc_text_base64(struct buf *buf, const void *data, size_t len)
{
    char *room = len <= SIZE_MAX / 2 ? buf_extend(buf, base64_encoded_len(len)) : NULL;

    if (!room)
        return false;
    base64_encode(data, len, room);
    return true;
}

bool rpc_text_result(struct buf *buf, const json_t *id)
{
    return buf_append_str(buf, "{\"id\":") && rpc_text_json(buf, id) &&
           buf_append_str(buf, ",\"result\":");
}

static bool text_method(struct buf *buf, const char *method)
{
    return buf_append_str(buf, "\"method\":") && rpc_text_string(buf, method, strlen(method)) &&
           buf_append_str(buf, ",\"params\":");
}

bool rpc_text_notification(struct buf *buf, const char *method)
{
    return buf_append_str(buf, "{") && text_method(buf, method);
}

bool rpc_text_request(struct buf *buf, int64_t id, const char *method)
{
    return buf_appendf(buf, "{\"id\":%" PRId64 ",", id) && text_method(buf, method);
}

bool rpc_text_end(struct buf *buf)
{
    return buf_append_str(buf, "}");
}

bool rpc_text_error(struct buf *buf, const json_t *id, const struct rpc_failure *failure)
{
    return buf_appendf(buf, "{\"error\":{\"code\":%" PRId64 ",\"message\":", failure->code) &&
           rpc_text_string(buf, failure->message, strlen(failure->message)) &&
           (!failure->data ||
            (buf_append_str(buf, ",\"data\":") && rpc_text_json(buf, failure->data))) &&
           buf_append_str(buf, "},\"id\":") &&
           (id ? rpc_text_json(buf, id) : buf_append_str(buf, "-1")) && rpc_text_end(buf);
}
