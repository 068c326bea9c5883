/* What process/start and session/exec do, in the audit log (audit/record.h): begin, denied and end
 * of each command, and what it does, where the configuration wants that; never its input or output. */
#pragma once

struct client_session;
struct execution_event;
struct workspace;
struct rpc_process;

/* Of `env` nothing is written: it says which words of the command line are secrets. */
void process_audit_begin(struct rpc_process *process, char *const *env);

/* What became of something that was held, or refused. */
void process_audit_event(const struct rpc_process *process, const struct execution_event *event);

/* What it did since. */
void process_audit_trace(struct rpc_process *process);

/* Once; as it ended, or, when it has not, as given up by us. */
void process_audit_end(struct rpc_process *process);

/* A command that was not started, because the rules forbid it. All borrowed. */
struct process_refusal {
    char *const *argv;
    char *const *env;
    const char *cwd;
    const struct workspace *workspace;
    const char *reason;
};

/* Its begin and its end. */
void process_audit_refusal(const struct client_session *owner,
                           const struct process_refusal *refusal);
