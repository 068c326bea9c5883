/* Versions without sessions (2026-07-28): every request says its version and who asks, and a call that has to ask something is
 * answered with the question. Between session.c and modern.c; tools and questions need nothing of it. */
#pragma once

#include "mcp/session.h"

extern const struct mcp_dialect mcp_modern;
extern const struct mcp_method mcp_modern_methods[]; /* server/discover, subscriptions/listen */

/* Whether the message is of these versions. */
bool mcp_modern_is(const struct mcp_message *message);

/* The version that it says; NULL: none. And whether it says all that it has to. */
const char *mcp_modern_version(const struct mcp_message *message);
bool mcp_modern_is_whole(const struct mcp_message *message);

/* Reads what the request says of itself into its new call. false: the call was answered with what is wrong. */
bool mcp_modern_begin(struct mcp_call *call, const struct mcp_message *message);

/* Whether the request brings the answers to questions of a call that waits for them: that call has its id and stream then, and
 * this one is gone. Also true when it was answered with what is wrong. */
bool mcp_modern_resume(struct mcp_call *call);

/* The call asks; `id` is that of the question. Takes `params`. */
void mcp_modern_ask(struct mcp_call *call, int64_t id, const char *method, json_t *params);

/* Its result, taken, is kept until its client comes; `code` 0: no error. false: nobody has to come for it, nothing was taken. */
bool mcp_modern_keep(struct mcp_call *call, const struct mcp_failure *failure, json_t *result);

/* Forgets the oldest result that is kept and nobody has come for. false: there is none. */
bool mcp_modern_make_room(struct mcp_session *session);

/* Answers all subscriptions/listen of the session: it ends, and not because of an accident. */
void mcp_modern_end_listening(struct mcp_session *session);

/* The call goes. */
void mcp_modern_free(struct mcp_call *call);
