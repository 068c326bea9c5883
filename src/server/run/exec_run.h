/* One command of exec/run or patch/apply: the engine's flow (executor/execution.h) with a client at
 * its end. Internal to server.
 *
 *     run = exec_run_new(call, id)
 *     ... its fields are filled ...
 *     exec_run_start(run)       answers the call when all is over, and frees the run
 *     exec_run_free(run)        instead of that
 *
 * The answer is owed to one connection: when that closes the command is ended, and a question that
 * waits for its client is answered with no. */
#pragma once

#include "base/strv.h"
#include "executor/execution.h"
#include "executor/execution_audit.h"
#include "executor/execution_report.h"
#include "patch/call.h"
#include "policy/profile.h"
#include "rpc/message.h"
#include "server/server_audit.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call;
struct client_session;
struct workspace;
struct server;

enum exec_run_output {
    EXEC_RUN_LIVE,  /* as much as the client takes */
    EXEC_RUN_WHOLE, /* all of it: the command waits for the client */
    EXEC_RUN_NONE,
};

struct exec_run {
    struct exec_run *next; /* of the server's runs */
    struct server *server;
    struct client_session *session;
    struct call *call; /* NULL: its client is gone */
    bool has_begun;    /* the attempt: its "begin" is told */
    char *id;          /* chosen by the client; NULL: nothing is told before the answer */
    uint64_t seq;      /* of the last event */
    char audit_id[SERVER_AUDIT_ID_SIZE]; /* in the audit log; "": it is not in there */
    struct audit_trail trail;            /* of the attempt that runs */
    unsigned attempts;                   /* that have begun */

    struct strv argv;
    struct strv env;
    struct strv base;    /* of env, what is not the call's own */
    struct strv own_env; /* what it would be if the call said nothing of it */
    struct strv keep;    /* names of `env` that the call, its policy or the configuration set */
    struct strv proposed;
    char *cwd;
    char *justification;
    json_t *sandbox;    /* the object of the call; NULL: none */
    json_t *layer;      /* the same */
    int layer_step;     /* of the last attempt; 0: none */
    bool tells_changes; /* the answer has what its step changed */
    unsigned topics;    /* of enum timeline_topic */
    struct profile_overlay additional;
    struct patch_call patch; /* what it really is; `text` NULL: a command */
    struct strv patched;     /* the files of a patch that may be asked about */
    struct strv helper;

    enum exec_run_output output;
    bool is_held;         /* the output, since the client takes nothing */
    bool is_input_closed; /* also for the next attempt */
    bool reports_later;
    struct run_later later;
    struct strv warnings;         /* lines for people, of its attempts */
    const struct workspace *told; /* whose lacks were warned of */

    struct workspace *workspace; /* of the call; held; NULL: not found yet */
    enum run_where at;           /* where the last attempt runs */
    struct job_run_options job;
    struct execution_options options;
    struct execution *execution;
    /* The answer; new reference. */
    json_t *(*answer)(struct exec_run *run, const struct execution_result *result);
};

/* Copies the id. With the defaults of a command that is not asked about. */
struct exec_run *exec_run_new(struct call *call, const char *id);
void exec_run_free(struct exec_run *run);

/* NULL when the session has no such run. */
struct exec_run *exec_run_find(const struct client_session *session, const char *id);

/* Finds the workspace of the call, by `sandbox` and `cwd`, which may change afterwards. `*ret_code` is
 * the code for the wire of a failure. */
int exec_run_workspace(struct exec_run *run, enum rpc_code *ret_code, struct err *err);

/* It runs the patch helper on `patch` from here on; `task` and `form` are its words, static.
 * ERR_UNSUPPORTED when the helper is not installed. */
int exec_run_patch(struct exec_run *run, const char *task, const char *form, struct err *err);

void exec_run_start(struct exec_run *run);

/* Ends the command, or takes back the question that it waits for; the call is still answered. */
void exec_run_cancel(struct exec_run *run);

/* The command that runs now, for what a client does to it; NULL: none does, yet or any more. */
struct job *exec_run_job(const struct exec_run *run);

/* Ends its input, of this attempt and the next. */
void exec_run_close_input(struct exec_run *run);

/* The client of a session takes more output again. */
void exec_runs_on_room(struct client_session *session);

/* All runs of the server; those of one session, killed. */
size_t exec_runs_count(const struct server *server);
void exec_runs_cancel(struct server *server);
void exec_runs_free(struct server *server);
void exec_runs_end(struct client_session *session);
