/* Listeners, limits and time of MCP over HTTP. As the hub of rpc does, it goes through everything for the earliest of all
 * deadlines (there are hundreds, not millions), and has a timer that fires in the next round for what must not happen
 * inside a call of a session. */
#include "mcp/http/server.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/log.h"
#include "mcp/http/connection.h"
#include "mcp/mcp.h"
#include "rpc/transport/auth.h"

#include <stdlib.h>
#include <sys/socket.h>

/* --- connections --- */

/* Who has not come in: said nothing yet, or was refused and does not go. Whose process it is, is found out soon. */
static bool is_stranger(const struct connection *connection)
{
    return !connection->is_known && connection->stage != CONNECTION_ADMITS;
}

/* The one that can be done without the most: a stranger, or else one between two requests. NULL: none can. */
static struct connection *find_spare(const struct mcp_http *http)
{
    struct connection *connection;
    struct connection *idle = NULL;

    list_for_each(connection, &http->connections, in_http) {
        if (is_stranger(connection))
            return connection;
        if (!idle && connection_is_idle(connection))
            idle = connection;
    }
    return idle;
}

/* There is room: `connections` is in the order of their last requests. */
static bool make_room(struct mcp_http *http)
{
    struct connection *spare;

    if (http->connections_len < CONNECTIONS_MAX)
        return true;
    spare = find_spare(http);
    if (!spare)
        return false;
    connection_break(spare);
    connection_free(spare);
    return true;
}

/* Says no to who would be one too many, without waiting for what it wants. */
static void turn_away(int fd)
{
    AUTO(buf_done) struct buf body;
    AUTO(buf_done) struct buf text;

    buf_init(&body, 1024);
    buf_init(&text, 4096);
    reply_error_text("there are too many connections: close some, or try again later", &body);
    reply_write(&(struct reply){.status = 503, .text = body.data, .len = body.len, .closes = true},
                &text);
    (void)!send(fd, text.data, text.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(fd);
}

static void on_accept(void *data, int fd, const struct rpc_address *from)
{
    struct mcp_http *http = data;

    if (make_room(http))
        connection_accept(http, fd, from);
    else
        turn_away(fd);
}

static void close_idle(struct mcp_http *http)
{
    struct connection *connection;
    size_t idle = 0;

    list_for_each(connection, &http->connections, in_http)
        idle += connection->is_known && connection_is_idle(connection);
    list_for_each(connection, &http->connections, in_http)
        if (idle > CONNECTIONS_IDLE_MAX && connection->is_known && connection_is_idle(connection)) {
            connection_break(connection);
            idle--;
        }
}

static void on_deferred(void *data)
{
    struct mcp_http *http = data;
    struct connection *connection;
    struct connection *following;

    list_for_each_safe(connection, following, &http->connections, in_http) {
        if (connection->goes_on && connection->stage != CONNECTION_DEAD)
            connection_go_on(connection);
        if (connection->stage != CONNECTION_DEAD)
            continue;
        endpoint_lost(connection);
        connection_free(connection);
    }
    close_idle(http);
}

/* --- time --- */

void mcp_http_tick(struct mcp_http *http)
{
    uint64_t now = clock_now_ns();
    struct connection *connection;

    http->due_ns = UINT64_MAX;
    for (size_t i = 0; i < http->listeners_len; i++)
        http_due_by(http, listener_tick(http->listeners[i], now));
    list_for_each(connection, &http->connections, in_http) {
        connection_tick(connection, now);
        http_due_by(http, connection_due_ns(connection));
    }
    http_due_by(http, endpoint_tick(http, now));
}

static void on_timer(void *data)
{
    mcp_http_tick(data);
}

static void on_pause(void *data, uint64_t until_ns)
{
    http_due_by(data, until_ns);
}

/* --- life --- */

static int check_exposure(const struct mcp_http *http, const struct rpc_address *address,
                          struct err *err)
{
    const struct rpc_auth *auth = http->options.auth;

    if (rpc_address_is_loopback(address) ||
        (auth && !rpc_auth_is_open(auth) && !rpc_auth_is_for_own_processes(auth)))
        return 0;
    return err_set(err, ERR_FORBIDDEN,
                   "others can come to an address that is not loopback: --ws-auth capability-token "
                   "or signed-bearer-token is needed, or a loopback address");
}

static int start_listener(struct mcp_http *http, const struct rpc_address *address, struct err *err)
{
    static const struct listener_events events = {on_accept, on_pause};
    struct rpc_listener *listener = listener_new(address, &events, http);
    size_t index = http->listeners_len++;

    http->listeners[index] = listener;
    if (check_exposure(http, address, err) || listener_start(listener, http->loop, -1, err))
        return -1;
    http->urls[index] = alloc_strf("%s" DOOR_PATH, rpc_listener_url(listener));
    return 0;
}

static void http_auto(struct mcp_http **http)
{
    mcp_http_free(*http);
}

struct mcp_http *mcp_http_new(const struct mcp_http_options *options, struct err *err)
{
    AUTO(http_auto) struct mcp_http *http = alloc_zero(1, sizeof *http);

    *http =
        (struct mcp_http){.options = *options, .loop = options->mcp->loop, .due_ns = UINT64_MAX};
    http->listeners = alloc_zero(options->addresses_len, sizeof *http->listeners);
    http->urls = alloc_zero(options->addresses_len, sizeof *http->urls);
    http->timer = loop_timer_new(http->loop, on_timer, http);
    http->deferred = loop_timer_new(http->loop, on_deferred, http);
    admission_init(&http->admission, http->loop);
    for (size_t i = 0; i < options->addresses_len; i++)
        if (start_listener(http, &options->addresses[i], err))
            return NULL;
    return TAKE_PTR(http);
}

void mcp_http_free(struct mcp_http *http)
{
    struct connection *connection;
    struct connection *following;

    if (!http)
        return;
    for (size_t i = 0; i < http->listeners_len; i++) {
        listener_free(http->listeners[i]);
        free(http->urls[i]);
    }
    free(http->listeners);
    free(http->urls);
    endpoint_end_sessions(http);
    list_for_each_safe(connection, following, &http->connections, in_http)
        connection_free(connection);
    admission_done(&http->admission);
    loop_timer_free(http->timer);
    loop_timer_free(http->deferred);
    free(http);
}

const char *mcp_http_url(const struct mcp_http *http, size_t index)
{
    return http->urls[index];
}
