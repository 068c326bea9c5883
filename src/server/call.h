/* A request of a client, from its arrival to its one answer, now or later.
 *
 *     schema/FAMILY/NAME.json       what goes over the wire; scripts/schema makes the table of
 *                                   methods, their parameters as structs and docs/protocol.md of it
 *     void method_fs_read_file(struct call *call, const struct fs_read_file_params *params)
 *       ... call_reply(call, json) or call_fail(call, code, ...)       the call is gone then
 *
 * A handler that cannot answer at once keeps the call and says with call_on_gone() how to stop: the
 * connection can close before the answer. The parameters are borrowed from the call. Nothing here
 * blocks, and no handler may.
 */
#pragma once

#include "base/err.h"
#include "base/list.h"
#include "policy/limit.h"
#include "rpc/message.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct client;
struct job;
struct method;
struct strv;

struct call {
    struct client *client;
    const struct method *method; /* NULL until it is known to be one that may be used */
    struct list in_client;
    struct rpc_message message; /* owned */
    void *params;               /* owned; those of the message, as their handler takes them */
    void (*on_gone)(void *data);
    void *data;
};

#define CALLS_MAX 1024 /* that wait on one connection */

/* Takes the message over. */
struct call *call_begin(struct client *client, struct rpc_message *message);

/* The parameters as they came, an empty object when there are none. */
const json_t *call_params(const struct call *call);

/* Appends the texts of an array, NULL for none. */
void call_words(const json_t *array, struct strv *ret);

/* `on_gone(data)` is called instead of any answer when the connection closes or the server stops;
 * the call is gone when it returns, and must not be answered in it. Without one (NULL) the call
 * must be answered by the handler itself. */
void call_on_gone(struct call *call, void (*on_gone)(void *data), void *data);

/* No answer can come any more: tells the handlers. */
void calls_drop(struct client *client);

/* The same of one that waits with an on_gone: its answer is this error. */
void call_cancel(struct call *call, const char *message);

/* --- answering: each ends the call --- */

void call_reply(struct call *call, json_t *result); /* takes the reference */

/* The result as JSON text without a line feed, for what is too large for a tree. Taken over
 * (free()). */
void call_reply_text(struct call *call, char *json, size_t len);

/* For bulk: the text of an answer, in the server's own buffer, up to where the result is to be
 * appended; and what sends it. Nothing else may be sent between the two. */
struct buf *call_result_begin(struct call *call);
void call_result_end(struct call *call);

void call_fail(struct call *call, enum rpc_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* As call_fail(), with more for a program. `data` is taken over. */
void call_fail_data(struct call *call, enum rpc_code code, const char *message, json_t *data);

/* "No such file or directory (os error 2)" with the code that the original gives it: ENOENT is
 * NOT_FOUND, EACCES, EPERM and EINVAL are INVALID_REQUEST, the others INTERNAL. */
void call_fail_errno(struct call *call, int error);

/* By err->code: ERR_INVALID is INVALID_PARAMS; ERR_NOT_FOUND, ERR_FORBIDDEN, ERR_LIMIT, ERR_BUSY and ERR_CONFLICT are
 * INVALID_REQUEST; the others INTERNAL. */
void call_fail_err(struct call *call, const struct err *err);

/* The message of `err`, by a code that the caller knows better. */
void call_fail_with(struct call *call, enum rpc_code code, const struct err *err);

/* The limits of a command, as the parameters of all methods that start one name them. */
#define CALL_LIMITS(params)                                                                        \
    (const uint64_t[LIMIT_COUNT])                                                                  \
    {                                                                                              \
        [LIMIT_MEMORY] = (params)->max_memory_bytes, [LIMIT_CPU_TIME] = (params)->max_cpu_time_ms, \
        [LIMIT_PIDS] = (params)->max_pids, [LIMIT_FILE_SIZE] = (params)->max_file_bytes,           \
        [LIMIT_FILES] = (params)->max_files,                                                       \
        [LIMIT_ADDRESS_SPACE] = (params)->max_address_space_bytes,                                 \
    }

/* What of them is given (UINT64_MAX is not). ERR_INVALID for what no program could start in. */
int call_limits(const uint64_t given[LIMIT_COUNT], struct resource_limits *ret, struct err *err);

/* --- limits ---
 *
 * `error.data` of a call that would have gone beyond a limit, for programs: {"reason", ...}. What
 * clients of the original read, code and message, stays as it is. The reasons are listed in
 * schema/intro.md, "Limits". */

/* {"reason": R, "limit": N}, to which others may be added; new reference. */
json_t *limit_data(const char *reason, size_t limit);

/* {"reason": "input-full", "limit", "pendingBytes"}: a write that is larger than the rest is taken
 * once the command has read. New reference. */
json_t *limit_data_of_input(const struct job *job);

/* {"reason": R, "errno": "EMFILE"} of what the system has run out of; NULL for any other error of
 * its. New reference. */
json_t *limit_data_of_errno(int error);
