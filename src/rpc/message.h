/* JSON-RPC messages of the exec-server's dialect: reading and writing.
 *
 * The dialect: "jsonrpc" is neither sent nor asked for; an id is a text or a signed 64-bit
 * integer; unknown fields are ignored; there are no batches. Four shapes:
 *
 *     {"id", "method", "params"?, "trace"?}    a request
 *     {"method", "params"?}                    a notification
 *     {"id", "result"}                         an answer to a request of ours
 *     {"id", "error": {"code", "message", "data"?}}
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RPC_VALUES_MAX = 262144, /* JSON values in one message, as Codex allows */
};

/* What Codex uses, and for what. */
enum rpc_code {
    RPC_INVALID_REQUEST =
        -32600, /* parse errors (id -1, where none is found), wrong state, unknown or duplicate ids */
    RPC_UNKNOWN_METHOD = -32601,   /* also asked before initialize */
    RPC_INVALID_PARAMS = -32602,   /* params do not decode */
    RPC_INTERNAL = -32603,         /* a command that does not start; every other system error */
    RPC_NOT_FOUND = -32004,        /* ENOENT on files; clients depend on it */
    RPC_SESSION_ATTACHED = -32010, /* resume of a session that is attached elsewhere; retried */
};

/* What an error message says. */
struct rpc_failure {
    int64_t code; /* of rpc_code, or an application's own */
    const char *message;
    const json_t *data; /* may be NULL */
};

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESULT, RPC_ERROR };

/* All but `root` borrow from it. */
struct rpc_message {
    enum rpc_kind kind;
    json_t *root;           /* owned; NULL: the message was taken or never was */
    const json_t *id;       /* integer or string; NULL in a notification */
    const char *method;     /* of requests and notifications */
    const json_t *params;   /* may be NULL (absent) */
    const json_t *result;   /* of RPC_RESULT */
    int64_t code;           /* of RPC_ERROR, as are the next two */
    const char *error_text; /* */
    const json_t *data;     /* may be NULL */
};

/* JSON that a peer sent: as json_parse(), with RPC_VALUES_MAX values at most, and quick with long strings. */
json_t *rpc_json_parse(const char *text, size_t len, struct err *err);

/* ERR_INVALID when the text is no message; the text of the error then fits behind the prefix that
 * the answer with id -1 begins with. */
int rpc_message_parse(const char *text, size_t len, struct rpc_message *ret, struct err *err);

/* The same, and texts may hold NUL. */
int rpc_message_parse_nul(const char *text, size_t len, struct rpc_message *ret, struct err *err);

/* The id of an object that cannot be parsed (a NUL or a number beyond 64 bits, a key twice, too many
 * values or levels), so that its sender need not wait for ever: found by quotes and brackets. New
 * reference; NULL when there is none or more than one, when the object does not end, and for what is
 * JSON, of which the shape is wrong: that is answered with id -1, as by the original.
 * `*ret_is_request`: it has a method. */
json_t *rpc_message_find_id(const char *text, size_t len, bool *ret_is_request);

void rpc_message_done(struct rpc_message *message);

/* Moves the message to the caller, who calls rpc_message_done(); `message` is left empty. */
struct rpc_message rpc_message_take(struct rpc_message *message);

/* --- writing ---
 *
 * Ready text is put together in a `struct buf` and handed to rpc_peer_send(), so
 * bulk never becomes a json_t:
 *
 *     rpc_text_notification(buf, "process/output") && buf_append_str(buf, "{\"processId\":") &&
 *     rpc_text_string(buf, id, strlen(id)) && buf_append_str(buf, ",\"chunk\":\"") &&
 *     rpc_text_base64(buf, data, len) && buf_append_str(buf, "\"}") && rpc_text_end(buf)
 *
 * Every function returns false when the buffer's limit would be passed; what is in the buffer then
 * is not a message. Field order is that of Codex. */

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

/* --- long strings, kept out of the JSON parser's way: of rpc_message_parse(), and for its fuzzer ---
 *
 *     json_bulk_take(&bulk, text, len, JSON_BULK_MIN)    parse bulk.text, which is shorter
 *     json_bulk_restore(&bulk, value)                    puts the strings where they belong
 *
 * The value is then what parsing the whole text would have given; `text` has to live until then. */
enum { JSON_BULK_MIN = 4096 }; /* bytes from which on it is worth it */

struct json_bulk_span {
    const char *at;
    size_t len;
};

struct json_bulk {
    const char *text; /* what to parse: the original or `shorter` */
    size_t len;
    struct buf shorter;
    struct json_bulk_span *spans; /* the strings, in the original */
    size_t span_count;
    size_t span_cap;
};

/* Takes out every string value of at least `long_enough` bytes that has no escapes and nothing but
 * printable ASCII. Never fails: what is no JSON stays none. */
void json_bulk_take(struct json_bulk *bulk, const char *text, size_t len, size_t long_enough);

/* `value` is nested at most JSON_DEPTH_MAX deep, as json_parse() sees to. */
void json_bulk_restore(const struct json_bulk *bulk, json_t *value);

void json_bulk_done(struct json_bulk *bulk);
