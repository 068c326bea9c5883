/* See message.h. Parsing is that of rpc/message.h, with its limits; here is the shape. What is wrong with a message
 * becomes an item like the others, so that whoever takes messages answers everything in one place, and a batch
 * with one wrong message keeps its others. Params are looked at as far as every method needs: an object, with an
 * object `_meta`. */
#include "mcp/message.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"
#include "rpc/message.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- reading --- */

static void set_invalid(struct mcp_message *message, int64_t code, const char *text)
{
    message->kind = MCP_INVALID;
    message->code = code;
    message->text = text;
}

static void read_call(const json_t *value, struct mcp_message *message)
{
    const json_t *params = json_object_get(value, "params");
    const json_t *meta = json_object_get(params, "_meta");

    message->kind = message->id ? MCP_REQUEST : MCP_NOTIFICATION;
    message->method = json_string_value(json_object_get(value, "method"));
    message->params = json_is_object(params) ? params : NULL;
    message->meta = json_is_object(meta) ? meta : NULL;
    if (!message->method)
        set_invalid(message, MCP_INVALID_REQUEST, "\"method\" should be a string");
    else if (params && !message->params && !json_is_null(params))
        set_invalid(message, MCP_INVALID_PARAMS, "\"params\" should be an object");
    else if (meta && !message->meta)
        set_invalid(message, MCP_INVALID_PARAMS, "\"_meta\" should be an object");
}

/* With both a result and an error it is an error: what could be a no is none of the answers that permit something. */
static void read_answer(const json_t *value, struct mcp_message *message)
{
    const json_t *error = json_object_get(value, "error");
    const json_t *code = json_object_get(error, "code");

    message->kind = error ? MCP_ERROR : MCP_RESULT;
    message->result = json_object_get(value, "result");
    message->code = json_integer_value(code);
    message->text = json_string_value(json_object_get(error, "message"));
    message->data = json_object_get(error, "data");
    if (!error && !message->result)
        set_invalid(message, MCP_INVALID_REQUEST,
                    "none of \"method\", \"result\", \"error\" is there");
    else if (error && (!json_is_integer(code) || !message->text))
        set_invalid(message, MCP_INVALID_REQUEST, "\"error\" should have \"code\" and \"message\"");
    else if (!error && !message->id)
        set_invalid(message, MCP_INVALID_REQUEST, "a result should have an \"id\"");
}

static void read_one(const json_t *value, struct mcp_message *message)
{
    const json_t *id = json_object_get(value, "id");
    const char *version = json_string_value(json_object_get(value, "jsonrpc"));
    bool is_call = json_object_get(value, "method");

    message->id = json_is_string(id) || json_is_integer(id) ? id : NULL;
    if (!json_is_object(value))
        set_invalid(message, MCP_INVALID_REQUEST, "a message should be an object");
    else if (!version || !str_eq(version, "2.0"))
        set_invalid(message, MCP_INVALID_REQUEST, "\"jsonrpc\" should be \"2.0\"");
    else if (id && !message->id && !(json_is_null(id) && json_object_get(value, "error")))
        set_invalid(message, MCP_INVALID_REQUEST, "\"id\" should be a string or an integer");
    else if (is_call)
        read_call(value, message);
    else
        read_answer(value, message);
}

static void read_batch(const json_t *array, struct mcp_messages *ret)
{
    size_t len = json_array_size(array);

    if (len == 0 || len > MCP_BATCH_MAX) {
        ret->wrong = alloc_strf("a batch should have 1 to %d messages", MCP_BATCH_MAX);
        set_invalid(ret->items, MCP_INVALID_REQUEST, ret->wrong);
        return;
    }
    ret->items = alloc_resize(ret->items, len, sizeof *ret->items);
    ret->len = len;
    ret->is_batch = true;
    for (size_t i = 0; i < len; i++) {
        ret->items[i] = (struct mcp_message){0};
        read_one(json_array_get(array, i), &ret->items[i]);
    }
}

void mcp_messages_read(const char *text, size_t len, struct mcp_messages *ret)
{
    struct err err;
    bool is_request;

    *ret = (struct mcp_messages){.items = alloc_zero(1, sizeof *ret->items), .len = 1};
    ret->root = rpc_json_parse(text, len, &err);
    if (json_is_array(ret->root)) {
        read_batch(ret->root, ret);
    } else if (ret->root) {
        read_one(ret->root, ret->items);
    } else {
        /* its sender need not wait for ever */
        ret->root = rpc_message_find_id(text, len, &is_request);
        ret->items->id = is_request ? ret->root : NULL;
        ret->wrong = alloc_strf("no JSON: %s", err.msg);
        set_invalid(ret->items, MCP_PARSE_ERROR, ret->wrong);
    }
}

void mcp_messages_done(struct mcp_messages *messages)
{
    free(messages->items);
    free(messages->wrong);
    json_decref(messages->root);
    *messages = (struct mcp_messages){0};
}

bool mcp_messages_want_answer(const struct mcp_messages *messages)
{
    for (size_t i = 0; i < messages->len; i++)
        if (messages->items[i].kind == MCP_REQUEST || messages->items[i].kind == MCP_INVALID)
            return true;
    return false;
}

/* --- writing --- */

static int write_text(const char *data, size_t len, void *buf)
{
    return buf_append(buf, data, len) ? 0 : -1;
}

/* Numbers as people write them: 0.003, where 17 digits would be 0.0030000000000000001. */
static void append_json(struct buf *buf, const json_t *value)
{
    json_dump_callback(value, write_text, buf,
                       JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
}

static void append_id(struct buf *buf, const json_t *id)
{
    buf_append_str(buf, "{\"jsonrpc\":\"2.0\",\"id\":");
    if (id)
        append_json(buf, id);
    else
        buf_append_str(buf, "null");
}

static void append_call(struct buf *buf, const char *method, const json_t *params)
{
    buf_append_str(buf, ",\"method\":");
    rpc_text_string(buf, method, strlen(method));
    if (params) {
        buf_append_str(buf, ",\"params\":");
        append_json(buf, params);
    }
    buf_append_str(buf, "}");
}

void mcp_text_result(struct buf *buf, const json_t *id, const json_t *result)
{
    append_id(buf, id);
    buf_append_str(buf, ",\"result\":");
    append_json(buf, result);
    buf_append_str(buf, "}");
}

void mcp_text_notification(struct buf *buf, const char *method, const json_t *params)
{
    buf_append_str(buf, "{\"jsonrpc\":\"2.0\"");
    append_call(buf, method, params);
}

void mcp_text_request(struct buf *buf, int64_t id, const char *method, const json_t *params)
{
    buf_appendf(buf, "{\"jsonrpc\":\"2.0\",\"id\":%" PRId64, id);
    append_call(buf, method, params);
}

void mcp_text_error(struct buf *buf, const json_t *id, const struct mcp_failure *failure)
{
    append_id(buf, id);
    buf_appendf(buf, ",\"error\":{\"code\":%" PRId64 ",\"message\":", failure->code);
    rpc_text_string(buf, failure->text, strlen(failure->text));
    if (failure->data) {
        buf_append_str(buf, ",\"data\":");
        append_json(buf, failure->data);
    }
    buf_append_str(buf, "}}");
}
