/* `ps`: the processes of every session of the server, as a table or as the server's own JSON. What
 * is shown was written by others: control characters become "?". */
#include "client/client.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- the table --- */

enum { COMMAND_MAX = 60, SESSION_SHORT = 8, SESSION_LONG = 36 };

/* Two sessions may begin alike, though hardly ever. */
static int session_len(const json_t *processes, const json_t *of)
{
    const char *session = connection_text(of, "sessionId");

    for (size_t i = 0; i < json_array_size(processes); i++) {
        const char *other = connection_text(json_array_get(processes, i), "sessionId");

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

void ps_table(const json_t *processes, uint64_t now_ns, struct buf *ret)
{
    size_t i;
    json_t *process;

    buf_append_str(ret, "ID               STATE    PID      TTY AGE  COMMAND\n");
    json_array_foreach(processes, i, process)
    {
        const json_t *pid = json_object_get(process, "pid");
        AUTO_FREE char *id = alloc_strf("%.*s/%s", session_len(processes, process),
                                        connection_text(process, "sessionId"),
                                        connection_text(process, "processId"));
        AUTO_FREE char *state =
            json_is_true(json_object_get(process, "exited"))
                ? alloc_strf("exit %" JSON_INTEGER_FORMAT,
                             json_integer_value(json_object_get(process, "exitCode")))
                : alloc_str("running");
        AUTO_FREE char *pid_text =
            json_is_integer(pid) ? alloc_strf("%" JSON_INTEGER_FORMAT, json_integer_value(pid))
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
}

/* --- the command --- */

static void connection_auto(struct connection **slot)
{
    connection_free(*slot);
}

int client_ps(const struct client *client, enum client_format format, int *ret_status,
              struct err *err)
{
    AUTO(connection_auto)
    struct connection *connection =
        connection_open(&client->server, CONNECTION_ENDS_SESSION, NULL, err);
    AUTO_JSON json_t *result =
        connection ? connection_call(connection, "process/list", json_pack("{s:b}", "all", 1), err)
                   : NULL;
    const json_t *list = json_object_get(result, "processes");
    AUTO_FREE char *json = NULL;
    AUTO(buf_done) struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    if (connection && !result && err->code == ERR_UNSUPPORTED)
        return err_set(err, ERR_UNSUPPORTED,
                       "this server has no process/list: it is an exec server, but none of "
                       "Cordon's");
    if (!result)
        return -1;
    if (!json_is_array(list))
        return err_set(err, ERR_INVALID, "process/list: the server gives no list");
    if (format == CLIENT_TEXT) {
        ps_table(list, clock_wall_ns(), &text);
    } else {
        /* On a terminal only ASCII: the control characters of C1 are as good as an escape there. */
        json = json_dumps(list, JSON_INDENT(2) | (isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0));
        if (!json || !buf_append_str(&text, json) || !buf_append_str(&text, "\n"))
            return err_set(err, ERR_SYSTEM, "writing the list as JSON");
    }
    *ret_status = 0;
    return fd_write_all(STDOUT_FILENO, text.data, text.len, err);
}
