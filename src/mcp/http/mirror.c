/* See mirror.h. A name that is no plain header comes as "=?base64?...?=", and is strict: it has one spelling, and no NUL behind
 * which something else could stand. A header that is there twice says nothing, since others could read the other one. */
#include "mcp/http/mirror.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/http_head.h"
#include "base/str.h"
#include "mcp/message.h"
#include "mcp/modern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPENING "=?base64?"
#define CLOSING "?="
#define NAME "Mcp-Name"

/* What the header stands for; NULL: it is ill-formed. Caller frees. */
static char *value_read(const char *text)
{
    size_t len = strlen(text);
    size_t around = strlen(OPENING) + strlen(CLOSING);
    AUTO_FREE char *value = NULL;
    struct err ignored;

    if (!str_starts(text, OPENING) || !str_ends(text, CLOSING) || len < around)
        return alloc_str(text);
    text += strlen(OPENING);
    len -= around;
    value = alloc_zero(base64_decoded_len(text, len) + 1, 1);
    if (base64_decode(text, len, value, &ignored) || strlen(value) != base64_decoded_len(text, len))
        return NULL;
    return TAKE_PTR(value);
}

static bool is_same(const struct http_head *head, const char *name, const char *wanted)
{
    AUTO_FREE char *value = NULL;
    const char *text = NULL;

    for (size_t i = 0; i < head->field_count; i++) {
        if (!http_is_same_field(head->fields[i].name, name))
            continue;
        if (text)
            return false;
        text = head->fields[i].value;
    }
    if (!text || !str_eq(name, NAME))
        return text && str_eq(text, wanted);
    value = value_read(text);
    return value && str_eq(value, wanted);
}

/* What Mcp-Name is to repeat; NULL: nothing. */
static const char *name_of(const struct mcp_message *message)
{
    static const struct {
        const char *method;
        const char *key;
    } named[] = {{"tools/call", "name"}, {"prompts/get", "name"}, {"resources/read", "uri"}};

    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (str_eq(message->method, named[i].method))
            return json_string_value(json_object_get(message->params, named[i].key));
    return NULL;
}

const char *mirror_mismatch(const struct http_head *head, const struct mcp_message *message,
                            char *ret, size_t size)
{
    const struct {
        const char *header;
        const char *wanted;
    } pairs[] = {
        {"MCP-Protocol-Version", mcp_modern_version(message)},
        {"Mcp-Method", message->method},
        {NAME, name_of(message)},
    };

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (!pairs[i].wanted || is_same(head, pairs[i].header, pairs[i].wanted))
            continue;
        snprintf(ret, size, "the header %s should be there and say what the body says",
                 pairs[i].header);
        return ret;
    }
    return NULL;
}

int mirror_status(const char *text, size_t len)
{
    AUTO(mcp_messages_done) struct mcp_messages messages = {0};

    if (!memmem(text, len, "\"error\":", strlen("\"error\":")))
        return 200;
    mcp_messages_read(text, len, &messages);
    if (messages.items->kind != MCP_ERROR)
        return 200;
    switch (messages.items->code) {
    case MCP_UNKNOWN_METHOD:
        return 404;
    case MCP_PARSE_ERROR:
    case MCP_INVALID_REQUEST:
    case MCP_HEADER_MISMATCH:
    case MCP_NO_CAPABILITY:
    case MCP_NO_VERSION:
        return 400;
    default:
        return 200;
    }
}
