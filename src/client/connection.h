/* One connection to an exec server, as its client.
 *
 *     connection_open(&server, lifetime, resume, &err)   connects and initializes
 *     connection_listen(connection, fn, data)   what the server sends without being asked
 *     connection_call(connection, ...)          asks, and waits for the answer
 *     connection_send(connection, &request)     asks, and goes on
 *     connection_run(connection, &err)          until connection_stop() or the server is gone
 *     connection_free(connection)
 *
 * connection_call() and connection_run() run the loop, so they are not for callbacks. What the
 * server sends behind an answer is not read before the next of them: the caller can get ready for
 * it. */
#pragma once

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct connection;
struct loop;
struct rpc_message;

/* Lifetimes of the session behind the connection's end. */
enum {
    CONNECTION_ENDS_SESSION = 1,   /* ms: what runs in it ends with the connection */
    CONNECTION_LEAVES_SESSION = 0, /* it stays as long as anything runs in it */
    CONNECTION_KEEPS_SESSION = -1, /* the server's usual time */
};

struct connection_options {
    const char *url;        /* ws://IP:PORT or unix:PATH */
    const char *token;      /* NULL: none; of ws:// only, as is the next, which is sent to nobody */
    const char *user_token; /* NULL: none; rpc_target.user_token */
};

/* The session's lifetime is in ms, or one of the above; a plain Codex server keeps all for 80 s.
 * `resume` is a session of an earlier connection; NULL: a new one. Waits at most 10 s for each step.
 * NULL on failure; the message ends in what to do about it. */
struct connection *connection_open(const struct connection_options *server, int64_t lifetime_ms,
                                   const char *resume, struct err *err);
void connection_free(struct connection *connection);

struct loop *connection_loop(const struct connection *connection);
const char *connection_session(const struct connection *connection); /* its id */
bool connection_is_lost(const struct connection *connection);

/* The directory of the server, as the file: URI that it sent; NULL when it sent none. */
const char *connection_dir(const struct connection *connection);

/* A request of the server's, approval/request: to be answered by the next two, now or later; or, without an id,
 * its approval/withdrawn. `on_question` NULL: all are refused, as at first. Both drop what the connection cannot take any more. */
typedef void connection_question_fn(void *data, const json_t *id, const json_t *params);
void connection_take_questions(struct connection *connection, connection_question_fn *on_question,
                               void *data);
void connection_reply(struct connection *connection, const json_t *id,
                      json_t *result); /* takes it */
void connection_refuse(struct connection *connection, const json_t *id, const char *why);

/* It knows the profiles of its own user: those can be named in place of a sandbox in full. */
bool connection_knows_profiles(const struct connection *connection);

/* What an error that the server answered with is here: see connection_call(). */
void connection_answer_err(const struct rpc_message *answer, struct err *ret);

typedef void connection_event_fn(void *data, const char *method, const json_t *params);
void connection_listen(struct connection *connection, connection_event_fn *on_event, void *data);

/* A new reference to the result, or NULL. Takes the reference `params`. What the server says no
 * with becomes ERR_UNSUPPORTED (it has no such method), ERR_NOT_FOUND, ERR_INVALID or ERR_SYSTEM;
 * ERR_FORBIDDEN: a rule forbids it, or it cannot be executed (`sys` ENOENT: there is no such program);
 * ERR_LIMIT is a session that another connection is attached to. */
json_t *connection_call(struct connection *connection, const char *method, json_t *params,
                        struct err *err);

/* The same for a last call: the answer is waited for, a second at most, and ignored. */
void connection_call_briefly(struct connection *connection, const char *method, json_t *params);

struct connection_request {
    const char *method;
    json_t *params; /* the reference is taken */
    /* As rpc_peer_call(); NULL: the answer does not matter. */
    void (*on_answer)(void *data, const struct rpc_message *answer);
    void *data;
};
/* Returns what connection_cancel() takes; 0 when the server is gone (and on_answer was called). */
int64_t connection_send(struct connection *connection, const struct connection_request *request);
void connection_cancel(struct connection *connection, int64_t id); /* no on_answer any more */

/* The same about a process, whose id is added to the parameters, without an answer. */
void connection_send_about(struct connection *connection, const char *process_id,
                           const char *method, json_t *params);

/* Runs until connection_stop(), which may be called before; ERR_SYSTEM when the server goes. */
int connection_run(struct connection *connection, struct err *err);
void connection_stop(struct connection *connection);

/* Stops hearing the server, so that it has to wait; and goes on. */
void connection_pause(struct connection *connection);
void connection_resume(struct connection *connection);

/* The text `name` of an object that the server sent, borrowed; "" when there is none. */
const char *connection_text(const json_t *object, const char *name);
