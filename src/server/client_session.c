/* See client_session.h. A detached session is found by its id, which is random so that no other
 * client comes upon it by accident. It is no secret among those whom the server lets in:
 * process/list with "all" shows it to a person who wants to look at what an agent started. They may
 * all run commands as this user (docs/threat-model.md). */
#include "server/client_session.h"

#include "approval/approvals.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/log.h"
#include "base/str.h"
#include "job/model_calls.h"
#include "loop/loop.h"
#include "server/client.h"
#include "server/model/model_request.h"
#include "server/process/rpc_process.h"
#include "server/run/exec_run.h"
#include "server/server.h"
#include "workspace/snapshots.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

/* RFC 9562, version 4. */
static void uuid_make(char ret[CLIENT_SESSION_ID_SIZE])
{
    unsigned char b[16];

    if (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b)
        abort(); /* Linux never returns less for so little */
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    snprintf(ret, CLIENT_SESSION_ID_SIZE,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
}

static bool has_live(const struct client_session *session)
{
    const struct rpc_process *process;

    list_for_each(process, &session->processes.list, in_table)
        if (rpc_process_is_live(process))
            return true;
    return false;
}

/* The clock of a session without a connection. */
static void start_clock(struct client_session *session)
{
    if (session->lifetime_ns)
        loop_timer_start(session->timer, session->lifetime_ns);
    else if (!has_live(session))
        loop_timer_start(session->timer, CLIENT_SESSION_LIFETIME_NS);
}

static void on_time(void *data)
{
    client_session_free(data);
}

struct client_session *client_session_new(struct server *server, uint64_t lifetime_ns)
{
    struct client_session *session = alloc_zero(1, sizeof *session);

    uuid_make(session->id);
    session->number = ++server->sessions_made;
    session->server = server;
    session->lifetime_ns = lifetime_ns;
    session->timer = loop_timer_new(server->loop, on_time, session);
    list_add(&server->sessions, &session->in_server);
    return session;
}

void client_session_free(struct client_session *session)
{
    log_event(LOG_LEVEL_INFO, "session-ended", log_text("session", session->id));
    if (session->client)
        session->client->session = NULL;
    while (!list_is_empty(&session->processes.list))
        rpc_process_free(list_first(&session->processes.list, struct rpc_process, in_table));
    model_part_end(session);
    exec_runs_end(session);
    approvals_free(session->approvals);
    snapshots_free(session->snapshots);
    list_remove(&session->in_server);
    loop_timer_free(session->timer);
    free(session);
}

struct client_session *client_session_find(const struct server *server, const char *id)
{
    struct client_session *session;

    list_for_each(session, &server->sessions, in_server)
        if (str_eq(session->id, id))
            return session;
    return NULL;
}

static void notify_processes(struct client_session *session)
{
    struct rpc_process *process;

    list_for_each(process, &session->processes.list, in_table)
        rpc_process_on_owner(process);
}

void client_session_attach(struct client_session *session, struct client *client)
{
    loop_timer_stop(session->timer);
    session->detached = 0;
    session->client = client;
    client->session = session;
    notify_processes(session);
}

static bool has_model_session(const struct client_session *session)
{
    AUTO_FREE int *ids = NULL;
    size_t len = 0;

    if (session->server->model_calls)
        ids = model_calls_list(session->server->model_calls, session->number, &len);
    return len > 0;
}

/* The one without a process that lost its connection first, but after `detached`; NULL: none. */
static struct client_session *find_spare(const struct server *server, uint64_t detached)
{
    struct client_session *found = NULL;
    struct client_session *session;

    list_for_each(session, &server->sessions, in_server)
        if (session->detached > detached && !session->processes.len &&
            (!found || session->detached < found->detached))
            found = session;
    return found;
}

/* Clients that come and go must not fill the memory with what they might resume. */
static void end_oldest(const struct server *server)
{
    const struct client_session *session;
    struct client_session *spare;
    size_t count = 0;

    list_for_each(session, &server->sessions, in_server)
        count += session->detached && !session->processes.len;
    if (count <= CLIENT_SESSIONS_DETACHED)
        return;
    spare = find_spare(server, 0);
    while (spare && has_model_session(spare))
        spare = find_spare(server, spare->detached);
    if (spare)
        client_session_free(spare);
}

void client_session_detach(struct client_session *session)
{
    session->client = NULL;
    session->detached = ++session->server->sessions_detached;
    notify_processes(session);
    start_clock(session);
    end_oldest(session->server);
}

void client_session_on_room(struct client_session *session)
{
    struct rpc_process *process;

    list_for_each(process, &session->processes.list, in_table)
        rpc_process_deliver(process);
}

void client_session_on_idle(struct client_session *session)
{
    if (!session->client && !session->lifetime_ns)
        start_clock(session);
}
