/* See session_approvals.h. A hook that cannot be made is an error, and nobody is asked in its
 * place: it is there to say no. */
#include "server/session_approvals.h"

#include "approval/approvals.h"
#include "approval/approver_hook.h"
#include "approval/approver_terminal.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "server/approver_client.h"
#include "server/client_session.h"
#include "server/server.h"

static struct asker *hook_new(const struct server *server, struct err *err)
{
    uint64_t limit_ns = server->limits.approval_ns;

    return asker_hook_new(server->loop, server->approval_hook,
                          limit_ns ? limit_ns : ASKER_HOOK_DEADLINE_NS, err);
}

static struct asker *person_new(struct client_session *session)
{
    AUTO_FREE char *who = alloc_strf("session %s", session->id);

    return session->server->prompt ? asker_terminal_new(session->server->prompt, who)
                                   : approver_client_new(session);
}

struct approvals *session_approvals(struct client_session *session, struct err *err)
{
    const struct server *server = session->server;
    uint64_t limit_ns = server->limits.approval_ns;
    struct asker *hook = NULL;

    if (session->approvals)
        return session->approvals;
    if (server->approval_hook) {
        hook = hook_new(server, err);
        if (!hook)
            return NULL;
    }
    session->approvals = approvals_new(server->loop, limit_ns ? limit_ns : SERVER_APPROVAL_NS);
    if (hook)
        approvals_add_asker(session->approvals, hook);
    approvals_add_asker(session->approvals, person_new(session));
    return session->approvals;
}
