/* Writing messages, straight into the caller's buffer. Values that exist as JSON go through
 * jansson's callback writer; texts and bytes that do not, never become any. */
#include "rpc/text.h"

#include "base/auto.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "rpc/message.h"

#include <inttypes.h>
#include <string.h>

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
