/* The change layer that all sessions of this server work in (docs/layers.md): what their commands and patches write goes there,
 * and to the user's files when the user accepts it. One for a process, or none. */
#pragma once

#include "base/err.h"

#include <jansson.h>

struct mcp;

/* For the sandbox of the options: makes the layer of this name, or goes on with it; "new": one without a name. To be called
 * before there is a session: runs the loop until the server has answered. -1 says why there is none, with the remedy. */
int mcp_layer_open(struct mcp *mcp, const char *name, struct err *err);
void mcp_layer_close(struct mcp *mcp); /* it stays on the disk; nothing when there is none */

/* NULL without a layer; the second has the id where there is no name. */
const char *mcp_layer_id(const struct mcp *mcp);
const char *mcp_layer_name(const struct mcp *mcp);

/* What its resources are called: ID/changes, ID/diff/PATH. Those of an answer to layer/changes are appended. */
#define MCP_LAYER_URIS "cordon://layers/"
void mcp_layer_list(const struct mcp *mcp, const json_t *changes, json_t *list);

/* As methods of the engine take it: a new reference; NULL without a layer. */
json_t *mcp_layer_ref(const struct mcp *mcp);
