/* Questions about commands (docs/approvals.md), put to the person behind an MCP client: approval/request of the engine becomes
 * elicitation/create, and its answer the decision. What cannot be asked is refused at once. */
#pragma once

#include <stdbool.h>

struct mcp_call;
struct mcp_engine;
struct mcp_session;

/* The client of this call can show a form. */
bool mcp_ask_can(const struct mcp_call *call);

/* From now on the questions of the engine are put to the session's client. */
void mcp_ask_begin(struct mcp_session *session, struct mcp_engine *engine);
