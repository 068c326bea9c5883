/* What the server writes to the audit log (audit/audit.h): one log for all that its clients run.
 * The records of one command have an id of their own that begins with that of its client's session,
 * so `cordon log --session` finds one command by the whole and all of a client by the beginning. */
#pragma once

#include "audit/record.h"

#include <stdbool.h>

struct audit_trail;
struct client_session;
struct json_t;
struct server;
struct timeline;

enum { SERVER_AUDIT_ID_SIZE = 60 }; /* a UUID, a dot, a number, and the NUL */

/* An id for a new command. false, and "", when the config directory is not known, so there is no
 * log. */
bool server_audit_id(const struct client_session *session, char ret[SERVER_AUDIT_ID_SIZE]);

/* There is one. */
bool server_audit_is_on(struct server *server);

/* Takes `body` over. */
void server_audit_add(struct server *server, enum audit_event event, const char *id,
                      struct json_t *body);

/* Of what commands do, what the configuration wants there: enum timeline_topic. */
unsigned server_audit_topics(const struct server *server);

/* As execution_audit_trace(), all of it. */
void server_audit_trace(struct server *server, const char *id, struct audit_trail *trail,
                        const struct timeline *timeline);

/* Writes down what waits, and frees; also when there is none. */
void server_audit_free(struct server *server);
