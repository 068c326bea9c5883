/* JSON-RPC messages as MCP has them: reading and writing. Pure.
 *
 * Unlike the exec server's dialect (rpc/message.h) every message has "jsonrpc": "2.0", what is no message is
 * answered with the id null, and in 2025-03-26 an array of messages is a batch.
 *
 *     mcp_messages_read(text, len, &messages)    never fails: what is wrong is a message of its own kind
 *     for each: mcp_session_take(session, &messages.items[i], stream)
 *     mcp_messages_done(&messages) */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MCP_MESSAGE_MAX = 16 << 20, /* bytes of one that comes in */
    MCP_BATCH_MAX = 256,        /* messages in an array */
};

enum mcp_code {
    MCP_PARSE_ERROR = -32700,
    MCP_INVALID_REQUEST = -32600,
    MCP_UNKNOWN_METHOD = -32601,
    MCP_INVALID_PARAMS = -32602, /* also: no tool of this name */
    MCP_INTERNAL = -32603,
    MCP_NO_RESOURCE = -32002, /* in versions without sessions sent as MCP_INVALID_PARAMS */
    MCP_HEADER_MISMATCH = -32020,
    MCP_NO_CAPABILITY = -32021, /* data.requiredCapabilities */
    MCP_NO_VERSION = -32022,    /* data.supported, data.requested */
};

enum mcp_kind {
    MCP_REQUEST,
    MCP_NOTIFICATION,
    MCP_RESULT,  /* the answer to a request of ours, as is */
    MCP_ERROR,   /* that one */
    MCP_INVALID, /* none of them: `code` and `text` are to be answered */
};

/* All is borrowed from the struct mcp_messages. */
struct mcp_message {
    enum mcp_kind kind;
    const json_t *id; /* string or integer; NULL: none, or none that could be found */
    const char *method;
    const json_t *params; /* an object; NULL: none */
    const json_t *meta;   /* params._meta, an object; NULL: none */
    const json_t *result; /* of MCP_RESULT */
    int64_t code;         /* of MCP_ERROR and MCP_INVALID, as is the next */
    const char *text;
    const json_t *data; /* of MCP_ERROR; may be NULL */
};

struct mcp_messages {
    struct mcp_message *items; /* at least one */
    size_t len;
    bool is_batch; /* they came as an array; which versions but one do not know */
    json_t *root;  /* owned, as is the next: what the items borrow from */
    char *wrong;
};

/* Takes one JSON text: a message, or a batch. */
void mcp_messages_read(const char *text, size_t len, struct mcp_messages *ret);
void mcp_messages_done(struct mcp_messages *messages);

/* Whether anything in it wants an answer. */
bool mcp_messages_want_answer(const struct mcp_messages *messages);

/* --- writing: each appends one whole message, without a line's end --- */

void mcp_text_result(struct buf *buf, const json_t *id, const json_t *result);
void mcp_text_notification(struct buf *buf, const char *method, const json_t *params);
void mcp_text_request(struct buf *buf, int64_t id, const char *method, const json_t *params);

/* `id` NULL: null; `data` may be NULL. */
struct mcp_failure {
    int64_t code;
    const char *text;
    const json_t *data;
};
void mcp_text_error(struct buf *buf, const json_t *id, const struct mcp_failure *failure);
