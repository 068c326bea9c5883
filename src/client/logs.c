/* `logs`: what a process wrote, and with CLIENT_LOGS_FOLLOW what it writes. A watcher gets events;
 * of a plain Codex server, where one can only take the whole session up, the output is read
 * (process/read), by numbers since such a server knows no offsets. */
#include "client/client.h"

#include "base/auto.h"
#include "base/json.h"
#include "client/follow.h"
#include "client/remote_process.h"

#include <inttypes.h>

enum {
    READ_BYTES = 256 * 1024, /* of one answer */
    READ_WAIT_MS = 20000,
};

struct logs {
    const struct client *client;
    const struct client_logs *options;
    struct remote_process process;
    struct follow *follow;
};

static void logs_done(struct logs *logs)
{
    follow_free(logs->follow);
    remote_process_done(&logs->process);
}

static int logs_listen(struct logs *logs, struct err *err)
{
    const struct follow_options follow = {
        .connection = logs->process.connection,
        .console = logs->client->console,
        .id = logs->process.id,
        .order = FOLLOW_AS_SENT,
    };

    logs->follow = follow_new(&follow, err);
    return logs->follow ? 0 : -1;
}

/* --- watching --- */

static int logs_watch(struct logs *logs, struct err *err)
{
    uint64_t offset = remote_process_offset(&logs->process, &logs->options->from);
    AUTO_JSON json_t *result = remote_process_attach(&logs->process, offset, PROCESS_READ, err);
    json_int_t end = json_integer_value(json_object_get(result, "nextOffset"));

    if (!result)
        return -1;
    if (logs_listen(logs, err))
        return -1;
    if (logs->options->mode == CLIENT_LOGS_SO_FAR) {
        if (end <= 0 || offset >= (uint64_t)end)
            return 0;
        follow_until(logs->follow, (uint64_t)end);
    }
    return connection_run(logs->process.connection, err);
}

/* --- reading --- */

static json_t *logs_read_once(struct logs *logs, json_int_t after, struct err *err)
{
    json_int_t wait = logs->options->mode == CLIENT_LOGS_FOLLOW ? READ_WAIT_MS : 0;

    return connection_call(logs->process.connection, "process/read",
                           json_pack("{s:s, s:I, s:i, s:I}", "processId", logs->process.id,
                                     "afterSeq", after, "maxBytes", READ_BYTES, "waitMs", wait),
                           err);
}

/* Whether there is nothing more to read. */
static bool logs_take(struct logs *logs, const json_t *result, json_int_t *after)
{
    const json_t *chunks = json_object_get(result, "chunks");
    size_t len = json_array_size(chunks);

    for (size_t i = 0; i < len; i++) {
        const json_t *chunk = json_array_get(chunks, i);
        json_int_t seq = json_integer_value(json_object_get(chunk, "seq"));

        follow_chunk(logs->follow, chunk);
        if (seq > *after)
            *after = seq;
    }
    if (follow_has_no_reader(logs->follow))
        return true;
    if (len)
        return false;
    return logs->options->mode == CLIENT_LOGS_SO_FAR ||
           json_is_true(json_object_get(result, "closed"));
}

/* A process that has exited and is not closed yet makes a long poll return only for events newer
 * than afterSeq; the number of the exit is the next one then. */
static json_int_t logs_next(const json_t *result, json_int_t after)
{
    json_int_t next = json_integer_value(json_object_get(result, "nextSeq"));
    bool is_idle = !json_array_size(json_object_get(result, "chunks"));

    return is_idle && next > after + 1 ? next - 1 : after;
}

static int logs_read(struct logs *logs, struct err *err)
{
    const struct client_position *from = &logs->options->from;
    json_int_t after = 0;

    if (from->kind != CLIENT_POSITION_BYTE || from->bytes)
        return err_set(err, ERR_UNSUPPORTED,
                       "this server knows no offsets: leave out --from to get all it has kept");
    if (logs_listen(logs, err))
        return -1;
    for (;;) {
        AUTO_JSON json_t *result = logs_read_once(logs, after, err);

        if (!result)
            return -1;
        if (logs_take(logs, result, &after))
            return 0;
        after = logs_next(result, after);
    }
}

int client_logs(const struct client *client, const struct client_logs *options, int *ret_status,
                struct err *err)
{
    AUTO(logs_done) struct logs logs = {.client = client, .options = options};

    if (remote_process_open(client, options->id, &logs.process, err))
        return -1;
    if ((logs.process.kind == REMOTE_PROCESS_RESUMED ? logs_read : logs_watch)(&logs, err))
        return -1;
    *ret_status = 0;
    return follow_finish(logs.follow, err);
}
