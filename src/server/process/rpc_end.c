/* See rpc_end.h. Denials are looked for in what is retained of the output, and only when a command
 * failed in a sandbox: for every other one there is nothing to read. */
#include "server/process/rpc_end.h"

#include "base/auto.h"
#include "base/buf.h"
#include "server/client_session.h"
#include "server/place.h"
#include "server/process/rpc_event.h"
#include "server/process/rpc_process.h"
#include "server/server.h"

#include <stdint.h>
#include <string.h>

enum { DENIAL_TEXT_MAX = 1 << 20 }; /* bytes of each stream that are searched */

/* spec/exec-server.md 5.2: with pipes 128 + n for signal n, on a terminal 1 for any. */
static int exit_code(const struct rpc_process *process)
{
    const struct process_end *end = job_end(process->job);

    if (end->how == PROCESS_SIGNALED && process->has_tty)
        return 1;
    return job_exit_code(process->job);
}

static void collect_texts(const struct rpc_process *process, struct buf texts[STREAM_COUNT])
{
    struct output *output = job_output(process->job);
    char *piece = process->owner->server->piece;
    struct output_cursor place = {0};
    struct output_record record;

    for (int i = 0; i < STREAM_COUNT; i++)
        buf_init(&texts[i], DENIAL_TEXT_MAX);
    for (;;) {
        output_read(output, &place, OUTPUT_BY_RUN, piece, RPC_CHUNK_MAX, &record);
        if (record.kind == OUTPUT_EMPTY || record.kind == OUTPUT_END)
            return;
        if (record.kind == OUTPUT_BYTES)
            buf_append(&texts[record.stream], piece, (size_t)record.len);
    }
}

static void find_denials(const struct rpc_process *process, struct denials *ret)
{
    struct buf texts[STREAM_COUNT];
    struct denial_input input = {
        .access = process->place->access,
        .cwd = process->cwd,
        .end = job_end(process->job),
        .program = process->argv.items[0],
    };

    collect_texts(process, texts);
    for (int i = 0; i < STREAM_COUNT; i++)
        input.texts[i] = texts[i].data;
    denials_find(&input, ret);
    for (int i = 0; i < STREAM_COUNT; i++)
        buf_done(&texts[i]);
}

void rpc_end_fill(const struct rpc_process *process, struct rpc_end *ret)
{
    const struct process_end *end = job_end(process->job);

    ret->code = exit_code(process);
    ret->signal = end->how == PROCESS_SIGNALED ? end->signal : 0;
    if (process->place->access && ret->code != 0)
        find_denials(process, &ret->denials);
    ret->is_denied = denials_by_sandbox(&ret->denials);
}
