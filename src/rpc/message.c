/* Reading one message. jansson parses; what is here is the shape: which of the four kinds it is,
 * and that the members which make it so have the right types. Params are not looked at, that is
 * the business of the code that knows the method.
 *
 * The number of values is counted before anything is parsed, because a message of the permitted
 * length full of "[],[],[]" would become gigabytes of json_t. */
#include "rpc/message.h"

#include "base/auto.h"
#include "rpc/json_bulk.h"

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
