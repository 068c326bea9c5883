/* Cordon's server lists the processes of all sessions, and lets any connection watch any of them. A
 * plain Codex server does neither: there a process is reached by resuming its session (initialize
 * with resumeSessionId), which works while no other connection has it, and needs the session's
 * whole id. */
#include "client/remote_process.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"
#include "base/units.h"
#include "client/client.h"

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

enum { SESSION_LEN = 36, SESSION_MIN = 4 };

static bool is_session(const char *text, size_t len)
{
    return len >= SESSION_MIN && len <= SESSION_LEN && strspn(text, "0123456789abcdef-") >= len;
}

void process_name_parse(const char *id, struct process_name *ret)
{
    const char *slash = strchr(id, '/');
    size_t len = slash ? (size_t)(slash - id) : 0;

    *ret = (struct process_name){.process = id};
    if (!slash || !is_session(id, len))
        return;
    memcpy(ret->session, id, len);
    ret->process = slash + 1;
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
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

        if (!str_eq(text_of(entry, "processId"), name.process) ||
            !str_starts(text_of(entry, "sessionId"), name.session))
            continue;
        found = entry;
        count++;
    }
    if (count == 1)
        return found;
    if (count)
        err_set(err, ERR_INVALID,
                "%zu sessions have a process \"%s\": say which, as in %.8s/%s (\"ps\" lists them)",
                count, name.process, text_of(found, "sessionId"), name.process);
    else
        err_set(err, ERR_NOT_FOUND,
                "there is no process \"%s\" (\"ps\" lists them; one that ended is forgotten after "
                "80 s)",
                id);
    return NULL;
}

static struct connection *connect_with(const struct client *client, const char *resume,
                                       struct err *err)
{
    struct connection_options options = client->server;

    options.resume = resume;
    options.lifetime_ms = resume ? CONNECTION_KEEPS_SESSION : CONNECTION_ENDS_SESSION;
    return connection_open(&options, err);
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
    process->connection = connect_with(client, name.session, err);
    if (!process->connection)
        return -1;
    process->kind = REMOTE_PROCESS_RESUMED;
    process->session = alloc_str(name.session);
    process->id = alloc_str(name.process);
    return 0;
}

static int remote_process_find(const struct client *client, const char *id,
                               struct remote_process *process, struct err *err)
{
    struct err why;

    process->connection = connect_with(client, NULL, err);
    if (!process->connection)
        return -1;
    process->list =
        connection_call(process->connection, "process/list", json_pack("{s:b}", "all", 1), &why);
    if (!process->list && why.code == ERR_UNSUPPORTED)
        return remote_process_resume(client, id, process, err);
    if (!process->list) {
        *err = why;
        return -1;
    }
    process->entry = process_choose(process->list, id, err);
    if (!process->entry)
        return -1;
    process->id = alloc_str(text_of(process->entry, "processId"));
    process->session = alloc_str(text_of(process->entry, "sessionId"));
    return 0;
}

int remote_process_open(const struct client *client, const char *id, struct remote_process *ret,
                        struct err *err)
{
    AUTO(remote_process_done) struct remote_process process = {0};

    if (remote_process_find(client, id, &process, err))
        return -1;
    *ret = process;
    process = (struct remote_process){0};
    return 0;
}

void remote_process_done(struct remote_process *process)
{
    connection_free(process->connection);
    json_decref(process->list);
    free(process->id);
    free(process->session);
    *process = (struct remote_process){0};
}

uint64_t remote_process_total(const struct remote_process *process)
{
    json_int_t total = json_integer_value(json_object_get(process->entry, "nextOffset"));

    return total > 0 ? (uint64_t)total : 0;
}

uint64_t remote_process_offset(const struct remote_process *process,
                               const struct client_position *from)
{
    uint64_t total = remote_process_total(process);

    switch (from->kind) {
    case CLIENT_POSITION_BYTE:
        return from->bytes;
    case CLIENT_POSITION_LAST:
        return from->bytes < total ? total - from->bytes : 0;
    case CLIENT_POSITION_END:
        return total;
    }
    return total;
}

json_t *remote_process_attach(struct remote_process *process, uint64_t offset,
                              enum process_access access, struct err *err)
{
    json_t *params =
        json_pack("{s:s, s:s, s:b, s:I}", "sessionId", process->session, "processId", process->id,
                  "write", access == PROCESS_WRITE, "offset", (json_int_t)offset);
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
