/* `ps`: the processes of every session of the server, as a table or as the server's own JSON. What
 * is shown was written by others: control characters become "?". */
#include "client/ps.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"
#include "client/client.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- the table --- */

enum { COMMAND_MAX = 60, SESSION_SHORT = 8, SESSION_LONG = 36 };

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

/* Two sessions may begin alike, though hardly ever. */
static int session_len(const json_t *processes, const json_t *of)
{
    const char *session = text_of(of, "sessionId");

    for (size_t i = 0; i < json_array_size(processes); i++) {
        const char *other = text_of(json_array_get(processes, i), "sessionId");

        if (!str_eq(other, session) && strncmp(other, session, SESSION_SHORT) == 0)
            return SESSION_LONG;
    }
    return SESSION_SHORT;
}

static void append_clean(struct buf *ret, const char *text, size_t max)
{
    AUTO_FREE char *plain = utf8_plain(text);
    size_t len = strlen(plain);

    buf_append(ret, plain, utf8_cut(plain, len, max));
}

/* Appends to a line what a column holds, up to its width and a space. */
static void append_cell(struct buf *ret, const char *text, int width)
{
    int len = (int)strlen(text);

    append_clean(ret, text, SIZE_MAX);
    buf_appendf(ret, "%*s", len < width ? width - len + 1 : 1, "");
}

static char *state_of(const json_t *process)
{
    const json_t *code = json_object_get(process, "exitCode");

    if (json_is_true(json_object_get(process, "exited")))
        return alloc_strf("exit %" JSON_INTEGER_FORMAT, json_integer_value(code));
    return alloc_str("running");
}

/* "42s", "17m", "3h", "9d" */
static char *age_of(const json_t *process, uint64_t now_ns)
{
    json_int_t started_ms = json_integer_value(json_object_get(process, "startedAtMs"));
    int64_t seconds = ((int64_t)(now_ns / CLOCK_NS_PER_MS) - started_ms) / 1000;

    if (seconds < 0)
        seconds = 0;
    if (seconds < 100)
        return alloc_strf("%" PRId64 "s", seconds);
    if (seconds < 100 * 60)
        return alloc_strf("%" PRId64 "m", seconds / 60);
    if (seconds < 100 * 3600)
        return alloc_strf("%" PRId64 "h", seconds / 3600);
    return alloc_strf("%" PRId64 "d", seconds / 86400);
}

static void append_command(struct buf *ret, const json_t *process)
{
    const json_t *argv = json_object_get(process, "argv");
    size_t begin = ret->len;

    for (size_t i = 0; i < json_array_size(argv) && ret->len - begin < COMMAND_MAX; i++) {
        const char *word = json_string_value(json_array_get(argv, i));

        if (i)
            buf_append_str(ret, " ");
        append_clean(ret, word ? word : "", COMMAND_MAX - (ret->len - begin));
    }
}

static void append_row(struct buf *ret, const json_t *processes, const json_t *process,
                       uint64_t now_ns)
{
    const json_t *pid = json_object_get(process, "pid");
    AUTO_FREE char *id = alloc_strf("%.*s/%s", session_len(processes, process),
                                    text_of(process, "sessionId"), text_of(process, "processId"));
    AUTO_FREE char *state = state_of(process);
    AUTO_FREE char *pid_text = json_is_integer(pid)
                                   ? alloc_strf("%" JSON_INTEGER_FORMAT, json_integer_value(pid))
                                   : alloc_str("-");
    AUTO_FREE char *age = age_of(process, now_ns);

    append_cell(ret, id, 16);
    append_cell(ret, state, 8);
    append_cell(ret, pid_text, 8);
    append_cell(ret, json_is_true(json_object_get(process, "tty")) ? "tty" : "-", 3);
    append_cell(ret, age, 4);
    append_command(ret, process);
    buf_append_str(ret, "\n");
}

void ps_table(const json_t *processes, uint64_t now_ns, struct buf *ret)
{
    buf_append_str(ret, "ID               STATE    PID      TTY AGE  COMMAND\n");
    for (size_t i = 0; i < json_array_size(processes); i++)
        append_row(ret, processes, json_array_get(processes, i), now_ns);
}

/* --- the command --- */

static json_t *ask(const struct client *client, struct err *err)
{
    struct connection_options server = client->server;
    struct connection *connection;
    json_t *result;

    server.lifetime_ms = CONNECTION_ENDS_SESSION;
    connection = connection_open(&server, err);
    if (!connection)
        return NULL;
    result = connection_call(connection, "process/list", json_pack("{s:b}", "all", 1), err);
    if (!result && err->code == ERR_UNSUPPORTED)
        err_set(err, ERR_UNSUPPORTED,
                "this server has no process/list: it is an exec server, but none of Cordon's");
    connection_free(connection);
    return result;
}

/* On a terminal only ASCII: the control characters of C1 are as good as an escape there. */
static int print_json(const json_t *list, struct buf *ret, struct err *err)
{
    size_t flags = JSON_INDENT(2) | (isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0);
    AUTO_FREE char *text = json_dumps(list, flags);

    if (!text || !buf_append_str(ret, text) || !buf_append_str(ret, "\n"))
        return err_set(err, ERR_SYSTEM, "writing the list as JSON");
    return 0;
}

int client_ps(const struct client *client, enum client_format format, int *ret_status,
              struct err *err)
{
    AUTO_JSON json_t *result = ask(client, err);
    const json_t *list = json_object_get(result, "processes");
    AUTO(buf_done) struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    if (!result)
        return -1;
    if (!json_is_array(list))
        return err_set(err, ERR_INVALID, "process/list: the server gives no list");
    if (format == CLIENT_TEXT)
        ps_table(list, clock_wall_ns(), &text);
    else if (print_json(list, &text, err))
        return -1;
    *ret_status = 0;
    return fd_write_all(STDOUT_FILENO, text.data, text.len, err);
}
