/* A process as the protocol knows it: job/job.h with numbered events.
 *
 *     starting --> running --(exited)--> exited --(closed)--> closed --80 s--> gone
 *         \--> failed: the answer to process/start is an error, and the id is free
 *
 * Events are output, exited and closed, numbered 1, 2, 3 ... together and sent in this order. A
 * chunk of output/output.h is one event, so the number of an event follows from that of its chunk:
 * one more behind the exit. What it does (timeline/timeline.h), where that was asked for, is told beside
 * them, by the numbers of the timeline. */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "denial/denial.h"
#include "executor/execution_audit.h"
#include "job/job.h"
#include "server/server_audit.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct call;
struct client;
struct client_session;
struct loop_timer;
struct observer;
struct process_network;
struct workspace;
struct process_wait;

#define RPC_PROCESS_MEMORY                                                                         \
    ((size_t)2 << 20) /* head and tail: 1 MiB each, which a client may count on */
#define RPC_PROCESS_RETENTION_NS UINT64_C(80000000000) /* behind closed, as the original does */

enum rpc_process_state {
    RPC_PROCESS_STARTING,
    RPC_PROCESS_RUNNING,
    RPC_PROCESS_EXITED,
    RPC_PROCESS_CLOSED,
    RPC_PROCESS_FAILED
};

enum rpc_delivery {
    RPC_PUSH,  /* process/output as it comes; the command waits for a client that is slow */
    RPC_PULL,  /* process/read; the command waits for a client that does not ask */
    RPC_TAKEN, /* by the calls of a model (session/...): nothing is sent, and it never waits */
};

/* What is different when it exits: known from RPC_PROCESS_EXITED on. */
struct rpc_end {
    uint64_t chunks; /* that came before */
    int code;        /* on a terminal 1 for any signal */
    int signal;
    bool is_denied; /* sandboxDenied */
    struct denials denials;
};

struct rpc_process {
    struct job_watch job_watch;
    struct output_watch output_watch;
    char *id;
    struct client_session *owner;
    struct list in_table;    /* of the owner's */
    struct list in_retained; /* of the server's that are closed */
    size_t retained_bytes;
    struct job *job;             /* owned unless `is_lent` */
    bool is_lent;                /* by the sessions of models, until they have no more use for it */
    int number;                  /* of a model's session; 0: it was started by process/start */
    struct workspace *workspace; /* held; NULL once nothing runs any more */
    const char *sandbox_type;    /* of the workspace */
    char *layer_id;              /* it writes to; NULL: to the real files */
    int layer_step;              /* in this step of it; 0: not known */
    char audit_id[SERVER_AUDIT_ID_SIZE]; /* in the audit log, until its end is written there */
    struct audit_trail trail;            /* of what it does */
    struct strv argv;
    char *cwd;
    json_t *metadata; /* or NULL */
    uint64_t started_ms;
    bool has_tty;
    bool takes_input;
    enum rpc_delivery delivery;
    enum rpc_process_state state;
    bool is_open;        /* counted by the server */
    bool is_terminating; /* on request: what it wrote until then comes through in any case */
    struct call *start;  /* to be answered once it is known whether it runs */
    struct rpc_end end;
    struct output_cursor pushed; /* what comes next for the owner's connection */
    uint64_t told;               /* of its timeline, the last event that was sent there */
    uint64_t asked;              /* RPC_PULL: the client has got the output up to here */
    struct output_cursor found;  /* where the last read ended: the next one begins there */
    bool is_managed;             /* its network: the client is told of decisions */
    uint64_t review_ns;          /* and asked, for so long; 0: it is not */
    struct list waits;
    struct list observers;
    struct observer *writer; /* one of them, or NULL: the owner */
    struct loop_timer *wake; /* answers what waits */
    struct loop_timer *last; /* retention, or the removal of what failed */
};

struct rpc_process_options {
    struct client_session *owner;
    const char *id;
    const struct process_options *process;
    const struct resource_limits *limits; /* as in struct job_options */
    struct workspace *workspace;
    json_t *metadata; /* borrowed */
    enum rpc_delivery delivery;
    uint64_t spool_bytes;                  /* 0: none */
    const struct process_network *network; /* managed; NULL: none */
    struct call *start; /* answered when it has started, or failed to; NULL: no call does */
    struct job *lent;   /* a model's session that runs already, and */
    int number;         /* its number; NULL and 0: `process` is started */
};

/* Puts it into its owner's table. NULL on failure; the call is not answered then. */
struct rpc_process *rpc_process_new(const struct rpc_process_options *options, struct err *err);

/* Takes it out of its table; kills what runs. Not from a callback of its session. */
void rpc_process_free(struct rpc_process *process);

/* The number of the newest chunk of its output; 0: none yet. */
uint64_t rpc_process_last_chunk(const struct rpc_process *process);

/* The number of the newest event of its timeline, which has numbers of its own; 0: none yet. */
uint64_t rpc_process_last_event(const struct rpc_process *process);

/* The number of the next event. */
uint64_t rpc_process_next_seq(const struct rpc_process *process);

/* The number of the event that chunk `seq` of the output came with, and back: the last chunk with
 * an event of at most this number. */
uint64_t rpc_process_seq_of(const struct rpc_process *process, uint64_t chunk);
uint64_t rpc_process_chunk_of(const struct rpc_process *process, uint64_t seq);

/* The command itself has ended, and `end` says how. */
bool rpc_process_has_exited(const struct rpc_process *process);

/* Whether it counts for the limit on processes: something of it runs. */
bool rpc_process_is_live(const struct rpc_process *process);

/* Sends the owner's connection what waits for it, and lets the command go on or holds it up. */
void rpc_process_deliver(struct rpc_process *process);

/* The connection of the owner came or went. What was missed is not sent again. */
void rpc_process_on_owner(struct rpc_process *process);

/* RPC_PULL: the client knows the output up to `offset`. */
void rpc_process_asked(struct rpc_process *process, uint64_t offset);

/* Kills it, on request. `*ret_was_running` as process/terminate answers. */
int rpc_process_terminate(struct rpc_process *process, uint64_t grace_ns, bool *ret_was_running,
                          struct err *err);

/* "stdout", "stderr" or "pty". */
const char *rpc_process_stream(const struct rpc_process *process, enum stream stream);

/* Adds exited, exitCode, closed to an object. */
void rpc_process_state_to_json(const struct rpc_process *process, json_t *object);
