/* Where the commands of a session run: its workspace, by the directory of the process or by the roots of its client, and the
 * sandbox of a call, narrowed by what a client says of its own. Nothing that a client sends widens it, but roots that the user's
 * configuration trusts. */
#pragma once

#include "mcp/session.h"

/* notifications/initialized and notifications/roots/list_changed: asks for the roots. */
extern const struct mcp_method mcp_place_methods[];

void mcp_place_done(struct mcp_session *session);
