/* The client of a session as the one who is asked, and questions as they look on the wire. */
#pragma once

#include <jansson.h>

struct approvals;
struct client_session;

/* The questions of the session; made when they are first wanted. */
struct approvals *client_session_approvals(struct client_session *session);

/* {"approvalId", "sessionId", "question"}: with an id that is unique in the server. Takes over
 * `question` (approval_request_to_json()); new reference. */
json_t *client_session_question(const struct client_session *session, json_t *question);
