/* How a process ended, in the terms of the protocol. */
#pragma once

struct rpc_end;
struct rpc_process;

/* The exit code, and what the sandbox refused; `chunks` is left alone. Only with a job_end().
 */
void rpc_end_fill(const struct rpc_process *process, struct rpc_end *ret);
