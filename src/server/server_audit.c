/* See server_audit.h. The log is opened with the first command; events are written together, a
 * second after the first of them or when there are enough for it to be worth while. What cannot be
 * written is said once in the server's log and stops nothing. */
#include "server/server_audit.h"

#include "audit/audit.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/log.h"
#include "executor/execution_audit.h"
#include "loop/loop.h"
#include "policy/config/config.h"
#include "server/client_session.h"
#include "server/server.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define FLUSH_NS UINT64_C(1000000000)     /* 1 s */
#define LAST_WAIT_NS UINT64_C(1000000000) /* 1 s, when the server ends and others hold the log */

enum { FLUSH_LEN = 64 }; /* events: some tenths of a millisecond */

struct server_audit {
    struct audit *audit;
    struct loop_timer *timer;
    uint64_t ids;
    bool has_complained;
};

static void write_down(struct server_audit *audit, uint64_t wait_ns)
{
    struct err err;

    if (audit_flush(audit->audit, wait_ns, &err) == 0) {
        audit->has_complained = false;
        return;
    }
    if (err.code == ERR_LIMIT && !wait_ns) { /* others hold the log; there will be another time */
        loop_timer_start(audit->timer, FLUSH_NS);
        return;
    }
    if (!audit->has_complained)
        log_event(LOG_LEVEL_ERROR, "audit-failed", log_text("why", err.msg));
    audit->has_complained = true;
}

static void on_time(void *data)
{
    write_down(data, 0);
}

/* NULL: the config directory is not known. */
static struct server_audit *audit_of(struct server *server)
{
    struct server_audit *audit = server->audit;

    if (audit || !server->config.dir)
        return audit;
    audit = alloc_zero(1, sizeof *audit);
    audit->audit = audit_new(server->config.dir);
    audit->timer = loop_timer_new(server->loop, on_time, audit);
    server->audit = audit;
    return audit;
}

bool server_audit_is_on(struct server *server)
{
    return audit_of(server) != NULL;
}

bool server_audit_id(const struct client_session *session, char ret[SERVER_AUDIT_ID_SIZE])
{
    struct server_audit *audit = audit_of(session->server);

    *ret = '\0';
    if (audit)
        snprintf(ret, SERVER_AUDIT_ID_SIZE, "%s.%" PRIu64, session->id, ++audit->ids);
    return audit;
}

void server_audit_add(struct server *server, enum audit_event event, const char *id, json_t *body)
{
    struct server_audit *audit = server->audit;
    size_t waiting = audit_pending(audit->audit);

    audit_add(audit->audit, event, id, body);
    if (!waiting || audit->has_complained) /* what could not be written waits for the next one */
        loop_timer_start(audit->timer, FLUSH_NS);
    else if (waiting + 1 == FLUSH_LEN)
        loop_timer_start(audit->timer, 0);
}

unsigned server_audit_topics(const struct server *server)
{
    return server->config.dir ? config_audit_trace(server->config.file) : 0;
}

void server_audit_trace(struct server *server, const char *id, struct audit_trail *trail,
                        const struct timeline *timeline)
{
    const struct audit *audit = server->audit->audit;
    struct audit_note note;

    while (execution_audit_trace(trail, timeline, audit_pending(audit) < AUDIT_TRACE_PENDING_MAX,
                                 &note))
        server_audit_add(server, note.event, id, note.body);
}

void server_audit_free(struct server *server)
{
    struct server_audit *audit = TAKE_PTR(server->audit);

    if (!audit)
        return;
    write_down(audit, LAST_WAIT_NS);
    loop_timer_free(audit->timer);
    audit_free(audit->audit);
    free(audit);
}
