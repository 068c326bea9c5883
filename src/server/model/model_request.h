/* The calls of models (session/...) in the server: one store of their sessions for all clients,
 * each session owned by the client's session that started it; and the requests that wait for an
 * answer of the store. */
#pragma once

#include "base/err.h"
#include "job/model_calls.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct call;
struct client_session;
struct loop_timer;
struct queued_write;
struct server;

/* A request that waits. */
struct model_request {
    struct call *call;
    struct model_call *waiting;
    struct server *server;
    struct queued_write *queued; /* NULL but for session/write */
    const struct job *job;       /* borrowed while a write is tried; NULL otherwise */
    const char *tool;            /* for texts of errors */
    bool is_traced;              /* session/exec with `trace`: the answer names its process */
    uint64_t progress_ns;        /* how often it is told how far the command is; 0: never */
    struct loop_timer *progress; /* NULL: never */
    uint64_t told;               /* bytes of output, the last time */
};

/* The store of sessions, made when it is first needed. NULL on failure. */
struct model_calls *server_model_calls(struct server *server, struct err *err);

/* Starts waiting: answers at once with the error when there is nothing to wait for. `command`: for that text; NULL: of none. */
struct model_request *model_request_new(struct call *call, const char *tool);
void model_request_began(struct model_request *request, struct model_call *waiting,
                         const char *command, const struct err *err);
model_call_done_fn model_request_on_done;

/* The session that a call waits for; 0: it waits for none. */
int model_request_session(const struct call *call);

/* Answers a call that is not to be started, as a failure of its caller. */
void model_request_refuse(struct call *call, const char *tool, const char *command,
                          const char *reason);

/* The client's session has ended: so have its commands. */
void model_part_end(const struct client_session *session);

void model_part_free(struct server *server);
