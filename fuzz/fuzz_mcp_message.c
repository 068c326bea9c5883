/* Messages of MCP. Beside memory errors: what was read has the members of its kind, every answer is a message itself, and
 * what is no message can be answered. */
#include "fuzz.h"

#include "base/auto.h"
#include "base/buf.h"
#include "mcp/message.h"

#include <stdlib.h>
#include <string.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_kind(const struct mcp_message *message)
{
    bool is_call = message->kind == MCP_REQUEST || message->kind == MCP_NOTIFICATION;
    bool is_invalid = message->kind == MCP_INVALID;

    check(!is_call || message->method);
    check(is_invalid || (message->kind == MCP_NOTIFICATION) <= !message->id);
    check(message->kind != MCP_REQUEST || message->id);
    check(message->kind != MCP_RESULT || (message->id && message->result));
    check((message->kind != MCP_ERROR && !is_invalid) || message->text);
    check(!message->params || json_is_object(message->params));
    check(!message->meta || json_is_object(message->meta));
    check(!message->id || json_is_integer(message->id) || json_is_string(message->id));
}

/* As the peer would read it. */
static void check_answer(const struct mcp_message *message)
{
    AUTO(buf_done) struct buf text;
    AUTO(mcp_messages_done) struct mcp_messages again;
    const struct mcp_failure failure = {
        .code = MCP_INTERNAL,
        .text = message->method ? message->method
                : message->text ? message->text
                                : "",
        .data = message->params,
    };

    buf_init(&text, 1 << 24);
    mcp_text_error(&text, message->id, &failure);
    mcp_messages_read(text.data, text.len, &again);
    check(again.items->kind == MCP_ERROR && again.items->code == MCP_INTERNAL);
    check(message->id ? json_equal(again.items->id, message->id) : !again.items->id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(mcp_messages_done) struct mcp_messages messages;

    mcp_messages_read((const char *)data, size, &messages);
    check(messages.len && (messages.is_batch || messages.len == 1));
    for (size_t i = 0; i < messages.len; i++) {
        check_kind(&messages.items[i]);
        check_answer(&messages.items[i]);
    }
    return 0;
}
