/* A method of the protocol as its handler sees it: a call comes with checked parameters and is
 * answered once, now or later.
 *
 *     schema/FAMILY/NAME.json       what goes over the wire; scripts/schema makes the table of
 *                                   methods, the checks and docs/protocol.md of it
 *     void method_fs_read_file(struct call *call, const json_t *params)
 *       ... call_reply(call, json) or call_fail(call, code, ...)       the call is gone then
 *
 * A handler that cannot answer at once keeps the call and says with call_on_gone() how to stop: the
 * connection can close before the answer. Nothing here blocks, and no handler may.
 */
#pragma once

#include "base/err.h"
#include "rpc/message.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct call;
struct client;
struct loop;
struct places;
struct rpc_peer;
struct server;

/* `params` has every required field, each of its type and in its range, and belongs to the call:
 * borrowed until the call is answered. Optional fields may be missing or, where the schema says so,
 * null. An absent `params` of a method without any is an empty object here. */
typedef void method_fn(struct call *call, const json_t *params);

/* --- answering: each ends the call --- */

void call_reply(struct call *call, json_t *result); /* takes the reference */

/* The result as JSON text without a line feed, for what is too large for a tree. Taken over
 * (free()). */
void call_reply_text(struct call *call, char *json, size_t len);

void call_fail(struct call *call, enum rpc_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* "No such file or directory (os error 2)" with the code that spec/exec-server.md 2 gives it:
 * ENOENT is NOT_FOUND, EACCES, EPERM and EINVAL are INVALID_REQUEST, the others INTERNAL. */
void call_fail_errno(struct call *call, int error);

/* By err->code: ERR_INVALID is INVALID_PARAMS; ERR_NOT_FOUND, ERR_FORBIDDEN and ERR_LIMIT are
 * INVALID_REQUEST; the others INTERNAL. */
void call_fail_err(struct call *call, const struct err *err);

/* The message of `err`, by a code that the caller knows better. */
void call_fail_with(struct call *call, enum rpc_code code, const struct err *err);

/* --- what a handler may ask --- */

struct server *call_server(const struct call *call);
struct client *call_client(const struct call *call);

/* `on_gone(data)` is called instead of any answer when the connection closes or the server stops;
 * the call is gone when it returns, and must not be answered in it. Without one (NULL) the call
 * must be answered by the handler itself. */
void call_on_gone(struct call *call, void (*on_gone)(void *data), void *data);

/* The result of environment/info, which initialize gives, too; new reference. It comes with the
 * family of environment methods. */
json_t *environment_info(struct server *server);

struct loop *server_loop(const struct server *server);
struct places *server_places(struct server *server); /* place.h: sandboxes */

/* --- the client: one connection --- */

/* For what rpc/rpc.h offers: rpc_peer_notify(), rpc_peer_send(), rpc_peer_has_room(),
 * rpc_peer_call() ... */
struct rpc_peer *client_peer(const struct client *client);

/* What a family of methods keeps with a connection (file handles, watches, streams), one pointer
 * for each. `done` is called when the connection closes, behind every on_gone of its calls. */
enum client_part { CLIENT_PART_FILES, CLIENT_PART_WATCHES, CLIENT_PART_HTTP, CLIENT_PART_COUNT };

struct client_part_type {
    void (*done)(void *part);
    void (*on_room)(void *part); /* there is room in the queue again (rpc_handlers); may be NULL */
};

void *client_part(const struct client *client, enum client_part which); /* NULL: none yet */
void client_set_part(struct client *client, enum client_part which, void *part,
                     const struct client_part_type *type);

/* --- the handlers, as schema/ names them --- */

method_fn method_approval_list;
method_fn method_approval_resolve;
method_fn method_capabilities_discover_v2;
method_fn method_capability_roots_discover_v1;
method_fn method_environment_config_read;
method_fn method_environment_info;
method_fn method_environment_status;
method_fn method_exec_cancel;
method_fn method_exec_run;
method_fn method_fs_canonicalize;
method_fn method_fs_close;
method_fn method_fs_copy;
method_fn method_fs_create_directory;
method_fn method_fs_create_symlink;
method_fn method_fs_get_metadata;
method_fn method_fs_open;
method_fn method_fs_read_block;
method_fn method_fs_read_directory;
method_fn method_fs_read_file;
method_fn method_fs_remove;
method_fn method_fs_set_mode;
method_fn method_fs_walk;
method_fn method_fs_watch_missing;
method_fn method_fs_write_block;
method_fn method_fs_write_file;
method_fn method_http_request;
method_fn method_initialize;
method_fn method_patch_apply;
method_fn method_process_attach;
method_fn method_process_close_stdin;
method_fn method_process_detach;
method_fn method_process_list;
method_fn method_process_read;
method_fn method_process_resize;
method_fn method_process_signal;
method_fn method_process_start;
method_fn method_process_terminate;
method_fn method_process_wait;
method_fn method_process_write;
method_fn method_rules_add;
method_fn method_rules_check;
method_fn method_rules_list;
method_fn method_session_exec;
method_fn method_session_list;
method_fn method_session_screen;
method_fn method_session_terminate;
method_fn method_session_wait;
method_fn method_session_write;
