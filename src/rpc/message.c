/* Reading: jansson parses; what is here is the shape: which of the four kinds it is,
 * and that the members which make it so have the right types. Params are not looked at, that is
 * the business of the code that knows the method.
 *
 * The number of values is counted before anything is parsed, because a message of the permitted
 * length full of "[],[],[]" would become gigabytes of json_t.
 *
 * Writing goes straight into the caller's buffer. Values that exist as JSON go through jansson's
 * callback writer; texts and bytes that do not, never become any. */
#include "rpc/message.h"

#include "base/auto.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "rpc/json_bulk.h"

#include <inttypes.h>
#include <string.h>

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

static int message_check_count(const char *text, size_t len, struct err *err)
{
    if (len / 2 < RPC_VALUES_MAX) /* a value has at least one character and a comma */
        return 0;
    if (message_count_values(text, len) > RPC_VALUES_MAX)
        return err_set(err, ERR_INVALID, "more than %d values in one message", RPC_VALUES_MAX);
    return 0;
}

/* A missing id gives NULL. */
static int message_read_id(const struct json_at *root, const json_t **ret, struct err *err)
{
    struct json_at id = json_at_field(root, "id");

    if (id.value && !json_is_integer(id.value) && !json_is_string(id.value))
        return json_at_fail(&id, err, "should be a string or an integer of 64 bits");
    *ret = id.value;
    return 0;
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

static int message_read_answer(const struct json_at *root, struct rpc_message *message,
                               struct err *err)
{
    const json_t *result = json_object_get(root->value, "result");

    if (!message->id)
        return err_set(err, ERR_INVALID, "$: neither \"method\" nor \"id\" is there");
    if (!result && json_object_get(root->value, "error"))
        return message_read_error(root, message, err);
    if (!result)
        return err_set(err, ERR_INVALID, "$: none of \"method\", \"result\", \"error\" is there");
    message->kind = RPC_RESULT;
    message->result = result;
    return 0;
}

static int message_read(const struct json_at *root, struct rpc_message *message, struct err *err)
{
    if (json_at_object(root, err) || message_read_id(root, &message->id, err))
        return -1;
    return json_object_get(root->value, "method") ? message_read_call(root, message, err)
                                                  : message_read_answer(root, message, err);
}

/* Without the long strings first; if that fails, all of it again, for the place of what is wrong.
 */
static json_t *message_parse_json(const char *text, size_t len, struct err *err)
{
    AUTO(json_bulk_done) struct json_bulk bulk;
    json_t *root;

    json_bulk_take(&bulk, text, len, JSON_BULK_MIN);
    if (message_check_count(bulk.text, bulk.len, err))
        return NULL;
    root = json_parse(bulk.text, bulk.len, err);
    if (!root && bulk.span_count)
        return json_parse(text, len, err);
    json_bulk_restore(&bulk, root);
    return root;
}

int rpc_message_parse(const char *text, size_t len, struct rpc_message *ret, struct err *err)
{
    AUTO(rpc_message_done) struct rpc_message message = {0};
    struct json_at root;

    message.root = message_parse_json(text, len, err);
    if (!message.root)
        return -1;
    root = json_at_root(message.root);
    if (message_read(&root, &message, err))
        return -1;
    *ret = rpc_message_take(&message);
    return 0;
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

/* --- writing --- */

static int text_write(const char *data, size_t len, void *buf)
{
    return buf_append(buf, data, len) ? 0 : -1;
}

bool rpc_text_json(struct buf *buf, const json_t *value)
{
    return json_dump_callback(value, text_write, buf, JSON_COMPACT | JSON_ENCODE_ANY) == 0;
}

/* The bytes from `text` on that need no escape (RFC 8259, 7). */
static size_t text_plain_len(const char *text, size_t len)
{
    size_t n = 0;

    while (n < len && (unsigned char)text[n] >= 0x20 && text[n] != '"' && text[n] != '\\')
        n++;
    return n;
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
        size_t plain = text_plain_len(text, len);

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
