/* initialize: a new session, or one that was left behind. */
#include "base/clock.h"
#include "base/log.h"
#include "rpc/rpc.h"
#include "server/call.h"
#include "server/client.h"
#include "server/client_session.h"
#include "server/host.h"
#include "server/methods.gen.h"
#include "server/server.h"

static uint64_t lifetime_of(const struct initialize_params *params, const struct server *server)
{
    uint64_t asked = params->detached_lifetime_ms;

    if (asked == UINT64_MAX)
        return server->limits.lifetime_ns;
    return asked < UINT64_MAX / CLOCK_NS_PER_MS / 2 ? asked * CLOCK_NS_PER_MS : 0;
}

/* NULL: the call was answered. */
static struct client_session *session_take(struct call *call,
                                           const struct initialize_params *params)
{
    struct server *server = call->client->server;
    const char *wanted = params->resume_session_id;
    struct client_session *session;

    if (!wanted)
        return client_session_new(server, lifetime_of(params, server));
    session = client_session_find(server, wanted);
    if (!session)
        call_fail(call, RPC_INVALID_REQUEST, "unknown session id %s", wanted);
    else if (session->client)
        call_fail(call, RPC_SESSION_ATTACHED,
                  "session %s is already attached to another connection", wanted);
    else
        return session;
    return NULL;
}

void method_initialize(struct call *call, const struct initialize_params *params)
{
    struct client *client = call->client;
    struct client_session *session;

    if (client->state != CLIENT_NEW) {
        call_fail(call, RPC_INVALID_REQUEST, "initialize may only be sent once per connection");
        return;
    }
    if (client->server->is_stopping) {
        call_fail(call, RPC_INTERNAL, "the server is stopping");
        return;
    }
    session = session_take(call, params);
    if (!session)
        return;
    client->state = CLIENT_INITIALIZED;
    log_event(LOG_LEVEL_INFO, "session-attached", log_text("session", session->id),
              log_text("peer", rpc_peer_name(client->peer)),
              log_text("client", params->client_name));
    call_reply(call,
               json_pack("{s:s, s:o}", "sessionId", session->id, "environmentInfo", host_info()));
    client_session_attach(session, client);
}
