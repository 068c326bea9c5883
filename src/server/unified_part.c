/* See unified_part.h. The store does not know of places, so what a session runs in is held here
 * under its number, until the session is seen to have ended. */
#include "server/unified_part.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "server/client_session.h"
#include "server/place.h"
#include "server/server.h"
#include "server/unified_calls.h"

#include <stdlib.h>

enum { UNIFIED_CAPACITY = 1024 }; /* sessions of all clients */

struct unified_hold {
    int session_id;
    struct place *place;
    struct unified_hold *next;
};

struct unified *unified_part(struct server *server, struct err *err)
{
    const struct unified_options options = {
        .loop = server->loop,
        .capacity = UNIFIED_CAPACITY,
        .spool_quota = server->limits.spool_quota,
    };

    if (!server->unified)
        server->unified = unified_new(&options, err);
    return server->unified;
}

static bool is_over(struct unified *unified, int id)
{
    struct err ignored;
    const struct session *session = unified_find(unified, id, &ignored);

    return !session || session_end(session);
}

static void holds_sweep(struct server *server)
{
    struct unified_hold **at = &server->unified_holds;

    while (*at) {
        struct unified_hold *hold = *at;

        if (!is_over(server->unified, hold->session_id)) {
            at = &hold->next;
            continue;
        }
        *at = hold->next;
        place_release(hold->place);
        free(hold);
    }
}

void unified_part_keep(struct server *server, int session_id, struct place *place)
{
    struct unified_hold *hold = alloc_zero(1, sizeof *hold);

    holds_sweep(server);
    hold->session_id = session_id;
    hold->place = place;
    hold->next = server->unified_holds;
    server->unified_holds = hold;
}

static size_t count_of(const struct server *server, uint64_t owner)
{
    size_t len = 0;
    int *ids = server->unified ? unified_list(server->unified, owner, &len) : NULL;

    free(ids);
    return len;
}

size_t unified_part_count(const struct server *server)
{
    return count_of(server, 0);
}

bool unified_part_is_live(const struct client_session *session)
{
    return count_of(session->server, session->number) > 0;
}

void unified_part_end(const struct client_session *session)
{
    if (session->server->unified)
        unified_terminate_all(session->server->unified, session->number, 0);
}

void unified_part_terminate(struct server *server, uint64_t grace_ns)
{
    if (server->unified)
        unified_terminate_all(server->unified, 0, grace_ns);
}

void unified_part_free(struct server *server)
{
    unified_free(TAKE_PTR(server->unified));
    while (server->unified_holds) {
        struct unified_hold *next = server->unified_holds->next;

        place_release(server->unified_holds->place);
        free(server->unified_holds);
        server->unified_holds = next;
    }
}
