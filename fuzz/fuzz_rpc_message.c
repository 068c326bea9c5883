/* JSON-RPC messages. Beside memory errors: what was read has the members of its kind, is read the
 * same when written again, and what is refused can be answered. */
#include "fuzz.h"

#include "base/auto.h"
#include "base/buf.h"
#include "rpc/message.h"

#include <stdlib.h>
#include <string.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_kind(const struct rpc_message *message)
{
    bool is_call = message->kind == RPC_REQUEST || message->kind == RPC_NOTIFICATION;

    check(is_call == (message->method != NULL));
    check((message->kind == RPC_NOTIFICATION) == !message->id);
    check((message->kind == RPC_RESULT) == (message->result != NULL));
    check((message->kind == RPC_ERROR) == (message->error_text != NULL));
    check(!message->id || json_is_integer(message->id) || json_is_string(message->id));
}

static void check_again(const struct rpc_message *message)
{
    AUTO(buf_done) struct buf text;
    AUTO(rpc_message_done) struct rpc_message again = {0};
    struct err err;

    buf_init(&text, 1 << 24);
    check(rpc_text_json(&text, message->root));
    check(rpc_message_parse(text.data, text.len, &again, &err) == 0);
    check(again.kind == message->kind && json_equal(again.root, message->root));
}

/* An answer that carries any text and id is a message itself. */
static void check_answer(const json_t *id, const char *words)
{
    AUTO(buf_done) struct buf text;
    AUTO(rpc_message_done) struct rpc_message answer = {0};
    const struct rpc_failure failure = {.code = RPC_INVALID_REQUEST, .message = words};
    struct err err;

    buf_init(&text, 1 << 24);
    check(rpc_text_error(&text, id, &failure));
    check(rpc_message_parse(text.data, text.len, &answer, &err) == 0);
    check(answer.kind == RPC_ERROR && answer.code == RPC_INVALID_REQUEST);
    check(id ? json_equal(answer.id, id) : json_integer_value(answer.id) == -1);
}

/* Taking strings out before parsing changes nothing, however short they are. */
static void check_json_bulk(const char *text, size_t len)
{
    for (size_t long_enough = 0; long_enough < 4; long_enough++) {
        AUTO(json_bulk_done) struct json_bulk bulk;
        AUTO_JSON json_t *direct = NULL;
        AUTO_JSON json_t *value = NULL;
        struct err err;

        json_bulk_take(&bulk, text, len, long_enough);
        value = json_parse(bulk.text, bulk.len, &err);
        direct = json_parse(text, len, &err);
        check(!value == !direct);
        json_bulk_restore(&bulk, value);
        check(!value || json_equal(value, direct));
    }
}

static void check_id(const char *text, size_t len)
{
    bool is_request;
    AUTO_JSON json_t *id = rpc_message_find_id(text, len, &is_request);

    check(!id || json_is_integer(id) || json_is_string(id));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(rpc_message_done) struct rpc_message message = {0};
    struct err err;

    check_json_bulk((const char *)data, size);
    if (rpc_message_parse((const char *)data, size, &message, &err)) {
        check(err.code == ERR_INVALID);
        check_answer(NULL, err.msg);
        check_id((const char *)data, size);
        return 0;
    }
    check_kind(&message);
    check_again(&message);
    check_answer(message.id, message.method ? message.method : "");
    return 0;
}
