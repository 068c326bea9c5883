/* Calls of models on the wire; internal to the session/ methods. */
#pragma once

#include "base/err.h"
#include "job/model_calls.h"

#include <jansson.h>

struct call;
struct server;
struct write_turn;

/* One that waits. */
struct unified_wire_call {
    struct call *call;
    struct unified_call *waiting;
    struct server *server;
    struct write_turn *turn;       /* NULL but for session/write */
    const struct session *session; /* borrowed while a write is tried; NULL otherwise */
    const char *tool;              /* for texts of errors */
};

/* The store of sessions, made when it is first needed. NULL on failure. */
struct unified *unified_part(struct server *server, struct err *err);

/* What a call waits for, from its parameters. The numbers and the text live in `ret`. */
struct unified_wire_pace {
    struct unified_pace pace;
    uint64_t yield_ms;
    uint64_t max_tokens;
};
int unified_pace_read(const json_t *params, struct unified_wire_pace *ret, struct err *err);

/* Starts waiting: answers at once with the error when there is nothing to wait for. */
struct unified_wire_call *unified_wire_call_new(struct call *call, const char *tool);
void unified_wire_call_began(struct unified_wire_call *wire, struct unified_call *waiting,
                             const char *command, const struct err *err);
unified_done_fn unified_wire_on_done;

/* Answers a call that is not to be started, as a failure of its caller. */
void unified_wire_refuse(struct call *call, const char *tool, const char *command,
                         const char *reason);
