/* See reply.h. All that says no has a body of JSON-RPC with the id null, which the official clients show to their
 * users, as they do not the status alone. */
#include "mcp/http/reply.h"

#include "base/buf.h"
#include "base/json.h"
#include "rpc/transport/http.h"

#include <stdlib.h>
#include <string.h>

enum { NO_MESSAGE = -32600 }; /* JSON-RPC 2.0, 5.1: Invalid Request */

static bool write_session(const char *session, struct buf *ret)
{
    return !session || buf_appendf(ret, "mcp-session-id: %s\r\n", session);
}

bool reply_write(const struct reply *reply, struct buf *ret)
{
    buf_appendf(ret, "HTTP/1.1 %d %s\r\n", reply->status, http_status_phrase(reply->status));
    http_append_date(ret);
    if (reply->allow)
        buf_appendf(ret, "allow: %s\r\n", reply->allow);
    if (reply->status == 401)
        buf_append_str(ret, "www-authenticate: Bearer\r\n");
    write_session(reply->session, ret);
    if (reply->text)
        buf_append_str(ret, "content-type: application/json\r\ncache-control: no-store\r\n");
    if (reply->closes)
        buf_append_str(ret, "connection: close\r\n");
    return (reply->status == 204 || buf_appendf(ret, "content-length: %zu\r\n", reply->len)) &&
           buf_append_str(ret, "\r\n") &&
           (reply->is_to_head || buf_append(ret, reply->text, reply->len));
}

bool reply_write_stream(const char *session, bool is_chunked, struct buf *ret)
{
    buf_append_str(ret, "HTTP/1.1 200 OK\r\n");
    http_append_date(ret);
    return write_session(session, ret) &&
           buf_append_str(ret, "content-type: text/event-stream\r\n"
                               "cache-control: no-cache, no-transform\r\n"
                               "x-accel-buffering: no\r\n") &&
           buf_append_str(ret, is_chunked ? "transfer-encoding: chunked\r\n\r\n"
                                          : "connection: close\r\n\r\n");
}

bool reply_write_chunk(const char *text, size_t len, struct buf *ret)
{
    return buf_appendf(ret, "%zx\r\n", len) && buf_append(ret, text, len) &&
           buf_append_str(ret, "\r\n");
}

void reply_error_text(const char *text, struct buf *ret)
{
    AUTO_JSON json_t *error = json_pack("{s:s, s:n, s:{s:i, s:o}}", "jsonrpc", "2.0", "id", "error",
                                        "code", NO_MESSAGE, "message", json_lossy(text));
    char *line = json_dumps(error, JSON_COMPACT);

    buf_append_str(ret, line);
    free(line);
}
