/* See model_part.h. What a session runs in is held by its process (model_process.h). */
#include "server/model/model_part.h"

#include "base/auto.h"
#include "server/client_session.h"
#include "server/model/model_methods.h"
#include "server/model/model_process.h"
#include "server/model/write_queue.h"
#include "server/server.h"

enum { MODEL_SESSIONS_MAX = 1024 }; /* sessions of all clients */

struct model_calls *server_model_calls(struct server *server, struct err *err)
{
    const struct model_calls_options options = {
        .loop = server->loop,
        .capacity = MODEL_SESSIONS_MAX,
        .spool_quota = server->limits.spool_quota,
        .on_left = model_process_on_left,
        .data = server,
    };

    if (!server->model_calls)
        server->model_calls = model_calls_new(&options, err);
    return server->model_calls;
}

void model_part_end(const struct client_session *session)
{
    if (session->server->model_calls)
        model_calls_terminate_all(session->server->model_calls, session->number, 0);
}

void model_part_free(struct server *server)
{
    model_calls_free(TAKE_PTR(server->model_calls));
    write_queue_free(server);
}
