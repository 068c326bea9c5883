/* See unified_part.h. What a session runs in is held by its process (model_process.h). */
#include "server/model/model_part.h"

#include "base/auto.h"
#include "server/client_session.h"
#include "server/model/model_methods.h"
#include "server/model/model_process.h"
#include "server/model/write_queue.h"
#include "server/server.h"

enum { UNIFIED_CAPACITY = 1024 }; /* sessions of all clients */

struct unified *unified_part(struct server *server, struct err *err)
{
    const struct unified_options options = {
        .loop = server->loop,
        .capacity = UNIFIED_CAPACITY,
        .spool_quota = server->limits.spool_quota,
        .on_left = model_process_on_left,
        .data = server,
    };

    if (!server->unified)
        server->unified = unified_new(&options, err);
    return server->unified;
}

void unified_part_end(const struct client_session *session)
{
    if (session->server->unified)
        unified_terminate_all(session->server->unified, session->number, 0);
}

void unified_part_free(struct server *server)
{
    unified_free(TAKE_PTR(server->unified));
    write_turns_free(server);
}
