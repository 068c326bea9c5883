/* The exec server: everything between the transports (src/rpc) and the commands (src/executor,
 * src/job).
 *
 *     server_new(&options)
 *     server_run()            until SIGTERM, SIGINT or the end of stdin (stdio), and then drains
 *     server_free()           kills what still runs
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "rpc/rpc.h"
#include "server/process/process_table.h"
#include "server/process/rpc_event.h"
#include "server/rules_cache.h"
#include "server/server_limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call;
struct client;
struct client_session;
struct config;
struct exec_run;
struct layer_table;
struct file_pool;
struct loop;
struct workspace;
struct workspaces;
struct prompt;
struct server_audit;
struct service;
struct model_calls;
struct write_queue;

#define SERVER_GRACE_NS UINT64_C(2000000000) /* from SIGTERM to SIGKILL when the server stops */

enum stopping_step { STOPPING_NOT, STOPPING_DRAIN, STOPPING_TERMINATE, STOPPING_CLOSE };

/* How it ends; server.c has the drawing. */
struct stopping {
    enum stopping_step step;
    struct loop_timer *timer; /* for the next check */
    uint64_t until_ns;        /* when the next step comes at the latest */
};

/* What the configuration says; read again on SIGHUP. */
struct server_config {
    struct config *file; /* owned; NULL: there is none */
    char *path;          /* owned; of that file; NULL: there is none */
    char *text;          /* owned; what is in it */
    char *dir;  /* owned; where it lies: the user's rules, the audit log; NULL: not known */
    char *home; /* owned; for "~/" in rules; NULL: not known */
};

/* What clients have to bring, as it was read again. */
struct server_secrets {
    const char *flag;   /* that names the file */
    const char *file;   /* as it was given */
    char *const *files; /* borrowed: what no sandbox shows, as in the options */
    bool has_changed;
};

enum server_flag {
    SERVER_ASKS_TERMINAL = 1, /* the person at the controlling terminal is asked, not clients */
};

struct server_options {
    const struct rpc_address *addresses; /* to listen on, besides what systemd gives */
    size_t addresses_len;
    const struct rpc_auth *auth; /* borrowed; NULL: as in rpc/rpc.h */
    char *const *own_paths;      /* clean, NULL-terminated: read-only to every command */
    char *const *secrets;        /* canonical, NULL-terminated: files that no sandbox shows */
    /* Reads the configuration; on SIGHUP, too. NULL: there is none. */
    int (*configure)(void *data, struct server_config *ret, struct err *err);
    /* SIGHUP: reads the secrets of `auth` again, in place. `flag`, `file` and `files` are filled in
     * also on failure, when the old ones go on counting. NULL: there are none. */
    int (*renew)(void *data, struct server_secrets *ret, struct err *err);
    void *data;
    const char *approval_hook; /* borrowed; program that is asked first; NULL: none */
    char *const *approval_hook_env;
    const char
        *default_sandbox; /* borrowed; as sandbox_call.otherwise, of the methods of the original */
    unsigned flags;       /* of enum server_flag */
    struct server_limits limits;
};

struct server {
    struct loop *loop;
    struct rpc_hub *hub;
    struct workspaces *workspaces;
    struct file_pool *file_pool; /* NULL until an fs/ method is used; freed before the workspaces */
    struct layer_table *layers;  /* NULL until a layer is named; freed before the workspaces */
    struct model_calls *model_calls; /* NULL until session/exec is used */
    struct write_queue *write_queue; /* NULL until session/write is used */
    struct rules_cache rules;        /* of session/exec */
    size_t model_requests;           /* session/... that are not answered yet */
    struct exec_run *exec_runs;      /* commands of exec/run and patch/apply */
    const char *approval_hook;       /* asked first: absolute, with this environment; NULL: none */
    char *const *approval_hook_env;
    const char *default_sandbox; /* what a call of the original gets that names none */
    struct prompt *prompt;       /* where the person is asked; NULL: clients are */
    struct server_audit *audit;  /* the audit log; NULL: nothing is written yet */
    struct service *service;     /* signals, systemd */
    struct list clients;
    struct list sessions;
    uint64_t sessions_made;
    uint64_t sessions_detached;
    struct server_limits limits;
    struct server_config config;
    int (*configure)(void *data, struct server_config *ret, struct err *err);
    int (*renew)(void *data, struct server_secrets *ret, struct err *err);
    void *configure_data; /* of both */
    struct retained retained;
    size_t open;                      /* processes that are not closed */
    struct workspace *next_workspace; /* to be prepared for the next command; held; NULL: none */
    struct loop_timer *prepare_timer; /* when there is nothing else to do */
    struct buf scratch;               /* the text of one event */
    char piece[RPC_CHUNK_MAX];
    uint64_t started; /* processes, for /metrics */
    struct stopping stopping;
    bool is_stopping;
    bool is_done;
};

/* NULL on failure. */
struct server *server_new(const struct server_options *options, struct err *err);
void server_free(struct server *server);
int server_run(struct server *server, struct err *err);

/* Whether no other process may be started now; the call is answered then. */
/* What a call of our own methods runs in that names no sandbox; as sandbox_call.otherwise. */
const char *server_own_default(const struct server *server);

bool server_refuses(const struct server *server, struct call *call);

/* A command runs in this workspace: another one may follow. */
void server_on_started(struct server *server, struct workspace *workspace);

/* Ends everything, as the limits say; a second time: now. server_run() returns when it is done. */
void server_stop(struct server *server);

/* Something ended: perhaps a server that stops can take its next step. */
void stopping_check(struct server *server);

/* Reads the configuration and the secrets of clients again, and tells the log of each whether it
 * changed. What is wrong with one goes to the log, and the old one stays; connections stay in any
 * case. */
void server_reload(struct server *server);
