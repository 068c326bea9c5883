/* initialize: a new session, or one that was left behind. (spec/exec-server.md 3) */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "rpc/rpc.h"
#include "server/call.h"
#include "server/client.h"
#include "server/client_session.h"
#include "server/server.h"

#include <string.h>

static uint64_t lifetime_of(const json_t *params, const struct server *server)
{
    const json_t *ms = json_object_get(params, "detachedLifetimeMs");
    uint64_t asked;

    if (!json_is_integer(ms))
        return server->limits.lifetime_ns;
    asked = (uint64_t)json_integer_value(ms);
    return asked < UINT64_MAX / CLOCK_NS_PER_MS / 2 ? asked * CLOCK_NS_PER_MS : 0;
}

/* NULL: the call was answered. */
static struct client_session *session_take(struct call *call, const json_t *params)
{
    struct server *server = call->client->server;
    const char *wanted = json_string_value(json_object_get(params, "resumeSessionId"));
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

void method_initialize(struct call *call, const json_t *params)
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
              log_text("client", json_string_value(json_object_get(params, "clientName"))));
    call_reply(call, json_pack("{s:s, s:o}", "sessionId", session->id, "environmentInfo",
                               environment_info(client->server)));
    client_session_attach(session, client);
}
