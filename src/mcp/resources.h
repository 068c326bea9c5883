/* The sessions of a client as resources: what a person can look at in the client while the model's calls go on. Looking
 * takes nothing from the model (process/read).
 *
 *     cordon://permissions            what commands may do, JSON
 *     cordon://sessions               which sessions there are, JSON
 *     cordon://session/ID/output      what is kept of what it wrote
 *     cordon://session/ID/screen      what its terminal shows
 *     cordon://session/ID/info        JSON
 *     cordon://layers/ID/changes      what is in the change layer, if there is one, JSON
 *     cordon://layers/ID/diff/PATH    how one file of it differs
 *
 * What has ended can be read for a while (process/closed), but is not listed. */
#pragma once

#include "mcp/session.h"

struct mcp_listener;

/* The listener (news.h) hears of the resource from now on. false: its kind of resource is not known, or it follows too many. */
bool mcp_resource_follow(struct mcp_session *session, struct mcp_listener *listener,
                         const char *uri);

/* resources/list, .../templates/list, .../read, .../subscribe, .../unsubscribe and completion/complete */
extern const struct mcp_method mcp_resource_methods[];
