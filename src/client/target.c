/* See target.h. Cordon's server lists the processes of all sessions, and lets any connection watch
 * any of them. A plain Codex server does neither: there a process is reached by taking its session
 * up (initialize with resumeSessionId), which works while no other connection has it, and needs the
 * session's whole id. */
#include "client/target.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

enum { SESSION_LEN = 36, SESSION_MIN = 4 };

static bool is_session(const char *text, size_t len)
{
    return len >= SESSION_MIN && len <= SESSION_LEN && strspn(text, "0123456789abcdef-") >= len;
}

void target_name_parse(const char *id, struct target_name *ret)
{
    const char *slash = strchr(id, '/');
    size_t len = slash ? (size_t)(slash - id) : 0;

    *ret = (struct target_name){.process = id};
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

const json_t *target_choose(const json_t *list, const char *id, struct err *err)
{
    const json_t *processes = json_object_get(list, "processes");
    const json_t *found = NULL;
    struct target_name name;
    size_t count = 0;

    target_name_parse(id, &name);
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

static int target_resume(const struct client *client, const char *id, struct target *target,
                         struct err *err)
{
    struct target_name name;

    target_name_parse(id, &name);
    if (strlen(name.session) != SESSION_LEN)
        return err_set(err, ERR_UNSUPPORTED,
                       "this server has no process/list, so \"%s\" needs the whole id of its "
                       "session before it: SESSION/PROCESS, as run --detach prints it",
                       id);
    connection_free(target->connection);
    target->connection = connect_with(client, name.session, err);
    if (!target->connection)
        return -1;
    target->kind = TARGET_RESUMED;
    target->session = alloc_str(name.session);
    target->id = alloc_str(name.process);
    return 0;
}

static int target_find(const struct client *client, const char *id, struct target *target,
                       struct err *err)
{
    struct err why;

    target->connection = connect_with(client, NULL, err);
    if (!target->connection)
        return -1;
    target->list =
        connection_call(target->connection, "process/list", json_pack("{s:b}", "all", 1), &why);
    if (!target->list && why.code == ERR_UNSUPPORTED)
        return target_resume(client, id, target, err);
    if (!target->list) {
        *err = why;
        return -1;
    }
    target->entry = target_choose(target->list, id, err);
    if (!target->entry)
        return -1;
    target->id = alloc_str(text_of(target->entry, "processId"));
    target->session = alloc_str(text_of(target->entry, "sessionId"));
    return 0;
}

int target_open(const struct client *client, const char *id, struct target *ret, struct err *err)
{
    AUTO(target_done) struct target target = {0};

    if (target_find(client, id, &target, err))
        return -1;
    *ret = target;
    target = (struct target){0};
    return 0;
}

void target_done(struct target *target)
{
    connection_free(target->connection);
    json_decref(target->list);
    free(target->id);
    free(target->session);
    *target = (struct target){0};
}

uint64_t target_total(const struct target *target)
{
    json_int_t total = json_integer_value(json_object_get(target->entry, "nextOffset"));

    return total > 0 ? (uint64_t)total : 0;
}

uint64_t target_offset(const struct target *target, const struct client_from *from)
{
    uint64_t total = target_total(target);

    switch (from->kind) {
    case CLIENT_FROM_BYTE:
        return from->bytes;
    case CLIENT_FROM_LAST:
        return from->bytes < total ? total - from->bytes : 0;
    case CLIENT_FROM_END:
        return total;
    }
    return total;
}

json_t *target_attach(struct target *target, uint64_t offset, enum target_pen pen, struct err *err)
{
    json_t *params =
        json_pack("{s:s, s:s, s:b, s:I}", "sessionId", target->session, "processId", target->id,
                  "write", pen == TARGET_WRITES, "offset", (json_int_t)offset);
    AUTO_JSON json_t *result = connection_call(target->connection, "process/attach", params, err);
    const char *alias = json_string_value(json_object_get(result, "alias"));

    if (!result)
        return NULL;
    if (!alias) {
        err_set(err, ERR_INVALID, "process/attach: the server gives no alias");
        return NULL;
    }
    free(target->id);
    target->id = alloc_str(alias);
    return TAKE_PTR(result);
}
