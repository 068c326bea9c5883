/* See server_trail.h. The trail is made with the first command; events are written together, a
 * second after the first of them or when there are enough for it to be worth while. What cannot be
 * written is said once in the server's log and stops nothing. */
#include "server/server_audit.h"

#include "audit/audit.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/log.h"
#include "loop/loop.h"
#include "server/client_session.h"
#include "server/server.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define FLUSH_NS UINT64_C(1000000000)     /* 1 s */
#define LAST_WAIT_NS UINT64_C(1000000000) /* 1 s, when the server ends and others hold the log */

enum { FLUSH_LEN = 64 }; /* events: some tenths of a millisecond */

struct server_trail {
    struct audit *audit;
    struct loop_timer *timer;
    uint64_t ids;
    bool has_complained;
};

static void write_down(struct server_trail *trail, uint64_t wait_ns)
{
    struct err err;

    if (audit_flush(trail->audit, wait_ns, &err) == 0)
        return;
    if (err.code == ERR_LIMIT && !wait_ns) { /* others hold the log; there will be another time */
        loop_timer_start(trail->timer, FLUSH_NS);
        return;
    }
    if (!trail->has_complained)
        log_event(LOG_LEVEL_ERROR, "audit-failed", log_text("why", err.msg));
    trail->has_complained = true;
}

static void on_time(void *data)
{
    write_down(data, 0);
}

/* NULL: the config folder is not known. */
static struct server_trail *trail_of(struct server *server)
{
    struct server_trail *trail = server->trail;

    if (trail || !server->config.folder)
        return trail;
    trail = alloc_zero(1, sizeof *trail);
    trail->audit = audit_new(server->config.folder);
    trail->timer = loop_timer_new(server->loop, on_time, trail);
    server->trail = trail;
    return trail;
}

bool server_trail_id(const struct client_session *session, char ret[SERVER_TRAIL_ID_SIZE])
{
    struct server_trail *trail = trail_of(session->server);

    *ret = '\0';
    if (trail)
        snprintf(ret, SERVER_TRAIL_ID_SIZE, "%s.%" PRIu64, session->id, ++trail->ids);
    return trail;
}

void server_trail_add(struct server *server, enum audit_event event, const char *id, json_t *body)
{
    struct server_trail *trail = server->trail;
    size_t waiting = audit_pending(trail->audit);

    audit_add(trail->audit, event, id, body);
    if (!waiting)
        loop_timer_start(trail->timer, FLUSH_NS);
    else if (waiting + 1 == FLUSH_LEN)
        loop_timer_start(trail->timer, 0);
}

void server_trail_free(struct server *server)
{
    struct server_trail *trail = TAKE_PTR(server->trail);

    if (!trail)
        return;
    write_down(trail, LAST_WAIT_NS);
    loop_timer_free(trail->timer);
    audit_free(trail->audit);
    free(trail);
}
