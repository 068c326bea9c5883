/* `ps`: the processes of every session of the server, as a table or as the server's own JSON. What
 * is shown was written by others: control characters become "?". */
#include "client/client.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "client/ps_table.h"

#include <stdint.h>
#include <unistd.h>

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
