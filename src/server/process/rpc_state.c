/* What can be asked of a process of the protocol: its numbers, and how it stands. */
#include "server/process/rpc_process.h"

uint64_t wire_process_last_chunk(const struct wire_process *process)
{
    struct output_info info;

    output_info(session_output(process->session), &info);
    return info.last_seq;
}

bool wire_process_has_exited(const struct wire_process *process)
{
    return process->state == WIRE_EXITED || process->state == WIRE_CLOSED;
}

uint64_t wire_process_next_seq(const struct wire_process *process)
{
    return wire_process_last_chunk(process) + 1 + wire_process_has_exited(process) +
           (process->state == WIRE_CLOSED);
}

uint64_t wire_process_seq_of(const struct wire_process *process, uint64_t chunk)
{
    return chunk + (wire_process_has_exited(process) && chunk > process->end.chunks);
}

uint64_t wire_process_chunk_of(const struct wire_process *process, uint64_t seq)
{
    return seq - (wire_process_has_exited(process) && seq > process->end.chunks);
}

const char *wire_process_stream(const struct wire_process *process, enum stream stream)
{
    return process->has_tty ? "pty" : stream_name(stream);
}

bool wire_process_is_live(const struct wire_process *process)
{
    return process->state == WIRE_STARTING || process->state == WIRE_RUNNING ||
           session_is_alive(process->session);
}

void wire_process_state_to_json(const struct wire_process *process, json_t *object)
{
    bool is_over = wire_process_has_exited(process);

    json_object_set_new(object, "exited", json_boolean(is_over));
    json_object_set_new(object, "exitCode",
                        is_over ? json_integer(process->end.code) : json_null());
    json_object_set_new(object, "closed", json_boolean(process->state == WIRE_CLOSED));
}
