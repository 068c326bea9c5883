/* The sessions of models (session/exec and its kin) in the server: one store for all clients, each
 * session owned by the client's session that started it. */
#pragma once

struct client_session;
struct server;

/* The client's session has ended: so have its commands. */
void model_part_end(const struct client_session *session);

void model_part_free(struct server *server);
