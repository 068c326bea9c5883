/* The client of a session as the one who is asked, and questions as they look on the wire. */
#pragma once

#include <jansson.h>

struct asker;
struct client_session;

/* Asks by approval/request. Never NULL. */
struct asker *approver_client_new(struct client_session *session);

/* {"approvalId", "sessionId", "question"}: with an id that is unique in the server. Takes over
 * `question` (approval_request_to_json()); new reference. */
json_t *client_session_question(const struct client_session *session, json_t *question);
