/* The sessions of models (session/exec and its kin) in the server: one store for all clients, each
 * session owned by the client's session that started it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client_session;
struct server;

/* Commands that run; of one client, whether there is any. */
size_t unified_part_count(const struct server *server);
bool unified_part_is_live(const struct client_session *session);

/* The client's session has ended: so have its commands. */
void unified_part_end(const struct client_session *session);

void unified_part_terminate(struct server *server, uint64_t grace_ns);
void unified_part_free(struct server *server);
