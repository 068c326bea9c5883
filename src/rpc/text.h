/* Writing messages. Ready text is put together in a `struct buf` and handed to rpc_peer_send(), so
 * bulk never becomes a json_t:
 *
 *     rpc_text_notification(buf, "process/output") && buf_append_str(buf, "{\"processId\":") &&
 *     rpc_text_string(buf, id, strlen(id)) && buf_append_str(buf, ",\"chunk\":\"") &&
 *     rpc_text_base64(buf, data, len) && buf_append_str(buf, "\"}") && rpc_text_end(buf)
 *
 * Every function returns false when the buffer's limit would be passed; what is in the buffer then
 * is not a message. Field order is that of Codex. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct rpc_failure;

/* Each opens a message up to the value that the caller appends next, then rpc_text_end(). */
bool rpc_text_result(struct buf *buf, const json_t *id);         /* {"id":1,"result": */
bool rpc_text_notification(struct buf *buf, const char *method); /* {"method":"m","params": */
bool rpc_text_request(struct buf *buf, int64_t id,
                      const char *method); /* {"id":1,"method":"m",... */
bool rpc_text_end(struct buf *buf);        /* } */

/* A whole message: {"error":{"code":...,"message":"...","data":...},"id":...}. `id` NULL is -1, for
 * what could not be parsed; `data` may be NULL. Ill-formed UTF-8 in `message` is replaced. */
bool rpc_text_error(struct buf *buf, const json_t *id, const struct rpc_failure *failure);

/* Parts. */
bool rpc_text_json(struct buf *buf, const json_t *value);
bool rpc_text_string(struct buf *buf, const char *text, size_t len); /* with its quotes, lossy */
bool rpc_text_base64(struct buf *buf, const void *data, size_t len); /* without quotes */
