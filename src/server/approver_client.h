/* Who is asked about the commands of a session: what the server was started with, first a hook
 * program, then the person at the server's terminal or else the session's client; and questions as
 * that client sees them. */
#pragma once

#include "base/err.h"

#include <jansson.h>

struct approvals;
struct approver;
struct client_session;

/* The questions of the session; made when they are first wanted. NULL on failure. */
struct approvals *session_approvals(struct client_session *session, struct err *err);

/* Asks by approval/request. Never NULL. */
struct approver *approver_client_new(struct client_session *session);

/* {"approvalId", "sessionId", "question"}: with an id that is unique in the server. Takes over
 * `question` (approval_request_to_json()); new reference. */
json_t *client_session_question(const struct client_session *session, json_t *question);
