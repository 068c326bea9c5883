/* Processes that another program started: how one is found, what it wrote (`logs`), and its end
 * (`kill`).
 *
 * Cordon's server lists the processes of all sessions, and lets any connection watch any of them. A
 * plain Codex server does neither: there a process is reached by resuming its session (initialize
 * with resumeSessionId), which works while no other connection has it, and needs the session's
 * whole id.
 *
 * A watcher gets the output by events; of a plain Codex server it is read (process/read), by numbers
 * since such a server knows no offsets. The protocol has three ways to end a process: an interrupt,
 * SIGKILL, and (ours) SIGTERM with SIGKILL some time later; other signals cannot be sent. */
#include "client/remote_process.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "base/units.h"
#include "client/client.h"
#include "client/follow.h"

#include <stdlib.h>
#include <string.h>

int client_position_parse(const char *text, struct client_position *ret, struct err *err)
{
    struct client_position from = {.kind = CLIENT_POSITION_BYTE};

    if (str_eq(text, "end")) {
        from.kind = CLIENT_POSITION_END;
    } else if (*text == '-') {
        from.kind = CLIENT_POSITION_LAST;
        if (units_parse_size(text + 1, &from.bytes, err))
            return -1;
    } else if (!str_eq(text, "start") && units_parse_size(text, &from.bytes, err)) {
        return -1;
    }
    *ret = from;
    return 0;
}

/* --- which process --- */

enum {
    SESSION_LEN = 36,
    SESSION_MIN = 4,
    READ_BYTES = 256 * 1024, /* of one answer */
    READ_WAIT_MS = 20000,
};

void process_name_parse(const char *id, struct process_name *ret)
{
    size_t len = strspn(id, "0123456789abcdef-");

    *ret = (struct process_name){.process = id};
    if (id[len] != '/' || len < SESSION_MIN || len > SESSION_LEN)
        return;
    memcpy(ret->session, id, len);
    ret->process = id + len + 1;
}

const json_t *process_choose(const json_t *list, const char *id, struct err *err)
{
    const json_t *processes = json_object_get(list, "processes");
    const json_t *found = NULL;
    struct process_name name;
    size_t count = 0;

    process_name_parse(id, &name);
    for (size_t i = 0; i < json_array_size(processes); i++) {
        const json_t *entry = json_array_get(processes, i);

        if (!str_eq(connection_text(entry, "processId"), name.process) ||
            !str_starts(connection_text(entry, "sessionId"), name.session))
            continue;
        found = entry;
        count++;
    }
    if (count == 1)
        return found;
    if (count)
        err_set(err, ERR_INVALID,
                "%zu sessions have a process \"%s\": say which, as in %.8s/%s (\"ps\" lists them)",
                count, name.process, connection_text(found, "sessionId"), name.process);
    else
        err_set(err, ERR_NOT_FOUND,
                "there is no process \"%s\" (\"ps\" lists them; one that ended is forgotten after "
                "80 s)",
                id);
    return NULL;
}

static int remote_process_resume(const struct client *client, const char *id,
                                 struct remote_process *process, struct err *err)
{
    struct process_name name;

    process_name_parse(id, &name);
    if (strlen(name.session) != SESSION_LEN)
        return err_set(err, ERR_UNSUPPORTED,
                       "this server has no process/list, so \"%s\" needs the whole id of its "
                       "session before it: SESSION/PROCESS, as run --detach prints it",
                       id);
    connection_free(process->connection);
    process->connection =
        connection_open(&client->server, CONNECTION_KEEPS_SESSION, name.session, err);
    if (!process->connection)
        return -1;
    process->kind = REMOTE_PROCESS_RESUMED;
    process->id = alloc_str(name.process);
    return 0;
}

int remote_process_open(const struct client *client, const char *id, struct remote_process *ret,
                        struct err *err)
{
    struct err why;

    ret->connection = connection_open(&client->server, CONNECTION_ENDS_SESSION, NULL, err);
    if (!ret->connection)
        return -1;
    ret->list =
        connection_call(ret->connection, "process/list", json_pack("{s:b}", "all", 1), &why);
    if (!ret->list && why.code == ERR_UNSUPPORTED)
        return remote_process_resume(client, id, ret, err);
    if (!ret->list) {
        *err = why;
        return -1;
    }
    ret->entry = process_choose(ret->list, id, err);
    if (!ret->entry)
        return -1;
    ret->id = alloc_str(connection_text(ret->entry, "processId"));
    return 0;
}

void remote_process_done(struct remote_process *process)
{
    connection_free(process->connection);
    json_decref(process->list);
    free(process->id);
    *process = (struct remote_process){0};
}

uint64_t remote_process_offset(const struct remote_process *process,
                               const struct client_position *from)
{
    json_int_t next = json_integer_value(json_object_get(process->entry, "nextOffset"));
    uint64_t total = next > 0 ? (uint64_t)next : 0;

    if (from->kind == CLIENT_POSITION_BYTE)
        return from->bytes;
    if (from->kind == CLIENT_POSITION_END)
        return total;
    return from->bytes < total ? total - from->bytes : 0;
}

json_t *remote_process_attach(struct remote_process *process, uint64_t offset,
                              enum process_access access, struct err *err)
{
    json_t *params = json_pack(
        "{s:s, s:s, s:b, s:I}", "sessionId", connection_text(process->entry, "sessionId"),
        "processId", process->id, "write", access == PROCESS_WRITE, "offset", (json_int_t)offset);
    AUTO_JSON json_t *result = connection_call(process->connection, "process/attach", params, err);
    const char *alias = json_string_value(json_object_get(result, "alias"));

    if (!result)
        return NULL;
    if (!alias) {
        err_set(err, ERR_INVALID, "process/attach: the server gives no alias");
        return NULL;
    }
    free(process->id);
    process->id = alloc_str(alias);
    return TAKE_PTR(result);
}

/* --- logs --- */

struct logs {
    const struct client_logs *options;
    struct remote_process process;
    struct follow *follow;
};

static void logs_done(struct logs *logs)
{
    follow_free(logs->follow);
    remote_process_done(&logs->process);
}

static int logs_watch(struct logs *logs, struct follow_options *follow, struct err *err)
{
    uint64_t offset = remote_process_offset(&logs->process, &logs->options->from);
    AUTO_JSON json_t *result = remote_process_attach(&logs->process, offset, PROCESS_READ, err);
    json_int_t end = json_integer_value(json_object_get(result, "nextOffset"));

    if (!result)
        return -1;
    follow->id = logs->process.id;
    if (logs->options->mode == CLIENT_LOGS_SO_FAR)
        follow->until = end > 0 ? (uint64_t)end : 0;
    logs->follow = follow_new(follow, err);
    if (!logs->follow)
        return -1;
    return offset < follow->until ? connection_run(logs->process.connection, err) : 0;
}

/* Whether there is nothing more to read. */
static bool logs_take(struct logs *logs, const json_t *result, json_int_t *after)
{
    const json_t *chunks = json_object_get(result, "chunks");
    json_int_t next = json_integer_value(json_object_get(result, "nextSeq"));
    size_t i;
    json_t *chunk;

    json_array_foreach(chunks, i, chunk)
    {
        json_int_t seq = json_integer_value(json_object_get(chunk, "seq"));

        follow_chunk(logs->follow, chunk);
        if (seq > *after)
            *after = seq;
    }
    if (follow_has_no_reader(logs->follow))
        return true;
    if (json_array_size(chunks))
        return false;
    /* A process that has exited and is not closed yet makes a long poll return only for events
     * newer than afterSeq; the number of the exit is the next one then. */
    if (next > *after + 1)
        *after = next - 1;
    return logs->options->mode == CLIENT_LOGS_SO_FAR ||
           json_is_true(json_object_get(result, "closed"));
}

static int logs_read(struct logs *logs, struct follow_options *follow, struct err *err)
{
    const struct client_position *from = &logs->options->from;
    json_int_t wait = logs->options->mode == CLIENT_LOGS_FOLLOW ? READ_WAIT_MS : 0;
    json_int_t after = 0;

    if (from->kind != CLIENT_POSITION_BYTE || from->bytes)
        return err_set(err, ERR_UNSUPPORTED,
                       "this server knows no offsets: leave out --from to get all it has kept");
    logs->follow = follow_new(follow, err);
    if (!logs->follow)
        return -1;
    for (;;) {
        AUTO_JSON json_t *result =
            connection_call(logs->process.connection, "process/read",
                            json_pack("{s:s, s:I, s:i, s:I}", "processId", logs->process.id,
                                      "afterSeq", after, "maxBytes", READ_BYTES, "waitMs", wait),
                            err);

        if (!result)
            return -1;
        if (logs_take(logs, result, &after))
            return 0;
    }
}

int client_logs(const struct client *client, const struct client_logs *options, int *ret_status,
                struct err *err)
{
    AUTO(logs_done) struct logs logs = {.options = options};
    struct follow_options follow = {
        .console = client->console, .order = FOLLOW_AS_SENT, .until = UINT64_MAX};

    if (remote_process_open(client, options->id, &logs.process, err))
        return -1;
    follow.connection = logs.process.connection;
    follow.id = logs.process.id;
    if ((logs.process.kind == REMOTE_PROCESS_RESUMED ? logs_read : logs_watch)(&logs, &follow, err))
        return -1;
    *ret_status = 0;
    return follow_finish(logs.follow, err);
}

/* --- kill --- */

enum kill_way { KILL_TERM, KILL_INT, KILL_KILL };

static int way_parse(const char *signal, enum kill_way *ret, struct err *err)
{
    static const char *const ways[][2] = {
        [KILL_TERM] = {"TERM", "15"}, [KILL_INT] = {"INT", "2"}, [KILL_KILL] = {"KILL", "9"}};
    const char *name = signal ? signal : "TERM";

    if (str_starts(name, "SIG"))
        name += 3;
    for (int way = KILL_TERM; way <= KILL_KILL; way++)
        if (str_eq(name, ways[way][0]) || str_eq(name, ways[way][1])) {
            *ret = (enum kill_way)way;
            return 0;
        }
    return err_set(err, ERR_INVALID,
                   "--signal \"%s\": the protocol can send INT, TERM and KILL only", signal);
}

int client_kill(const struct client *client, const struct client_kill *options, int *ret_status,
                struct err *err)
{
    const struct client_position end = {.kind = CLIENT_POSITION_END};
    AUTO(remote_process_done) struct remote_process process = {0};
    AUTO_JSON json_t *attached = NULL;
    AUTO_JSON json_t *result = NULL;
    enum kill_way way = KILL_TERM;
    bool has_ended;

    if (way_parse(options->signal, &way, err) ||
        remote_process_open(client, options->id, &process, err))
        return -1;
    if (process.kind == REMOTE_PROCESS_WATCHED) {
        attached = remote_process_attach(&process, remote_process_offset(&process, &end),
                                         PROCESS_READ, err);
        if (!attached)
            return -1;
    } else if (way == KILL_TERM) {
        client->console->say("this server knows no SIGTERM: the process is killed at once");
    }
    has_ended = json_is_true(json_object_get(attached, "exited"));
    if (!has_ended) {
        json_int_t grace_ms = way == KILL_TERM ? options->grace_ns / CLOCK_NS_PER_MS : 0;

        result =
            way == KILL_INT
                ? connection_call(
                      process.connection, "process/signal",
                      json_pack("{s:s, s:s}", "processId", process.id, "signal", "interrupt"), err)
                : connection_call(
                      process.connection, "process/terminate",
                      json_pack("{s:s, s:I}", "processId", process.id, "graceMs", grace_ms), err);
        if (!result)
            return -1;
        has_ended = way != KILL_INT && !json_is_true(json_object_get(result, "running"));
    }
    if (has_ended)
        client->console->say("process %s has ended already", options->id);
    *ret_status = has_ended ? CLIENT_NO : 0;
    return 0;
}
