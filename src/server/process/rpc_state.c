/* What can be asked of a process of the protocol: its numbers, and how it stands. */
#include "server/process/rpc_process.h"

uint64_t rpc_process_last_chunk(const struct rpc_process *process)
{
    struct output_info info;

    output_info(job_output(process->job), &info);
    return info.last_seq;
}

bool rpc_process_has_exited(const struct rpc_process *process)
{
    return process->state == RPC_PROCESS_EXITED || process->state == RPC_PROCESS_CLOSED;
}

uint64_t rpc_process_next_seq(const struct rpc_process *process)
{
    return rpc_process_last_chunk(process) + 1 + rpc_process_has_exited(process) +
           (process->state == RPC_PROCESS_CLOSED);
}

uint64_t rpc_process_seq_of(const struct rpc_process *process, uint64_t chunk)
{
    return chunk + (rpc_process_has_exited(process) && chunk > process->end.chunks);
}

uint64_t rpc_process_chunk_of(const struct rpc_process *process, uint64_t seq)
{
    return seq - (rpc_process_has_exited(process) && seq > process->end.chunks);
}

const char *rpc_process_stream(const struct rpc_process *process, enum stream stream)
{
    return process->has_tty ? "pty" : stream_name(stream);
}

bool rpc_process_is_live(const struct rpc_process *process)
{
    return process->state == RPC_PROCESS_STARTING || process->state == RPC_PROCESS_RUNNING ||
           job_is_alive(process->job);
}

void rpc_process_state_to_json(const struct rpc_process *process, json_t *object)
{
    bool is_over = rpc_process_has_exited(process);

    json_object_set_new(object, "exited", json_boolean(is_over));
    json_object_set_new(object, "exitCode",
                        is_over ? json_integer(process->end.code) : json_null());
    json_object_set_new(object, "closed", json_boolean(process->state == RPC_PROCESS_CLOSED));
}
