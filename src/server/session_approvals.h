/* Who is asked about the commands of a session: what the server was started with, first a hook
 * program, then the person at the server's terminal or else the session's client. */
#pragma once

#include "base/err.h"

struct approvals;
struct client_session;

/* The questions of the session; made when they are first wanted. NULL on failure. */
struct approvals *session_approvals(struct client_session *session, struct err *err);
