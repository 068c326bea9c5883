/* What the tools and the resources of a change layer share. */
#pragma once

#include "base/buf.h"

#include <jansson.h>

struct mcp;
struct mcp_call;

/* Those of arguments, as the engine takes them: a new reference; NULL: none were given. */
json_t *mcp_layer_paths(struct mcp_call *call, const json_t *paths);

/* One of layer/changes as a line without its end; the counts of all; and a line for each of `left` and `problems`
 * in the answer to layer/accept and its likes. */
void mcp_layer_append_change(const json_t *change, struct buf *ret);
void mcp_layer_append_counts(const json_t *counts, struct buf *ret);
void mcp_layer_append_left(const json_t *result, struct buf *ret);

/* What layer_changes gives of an answer to layer/changes: a new reference. What layer/diff says, as a text: the caller frees. */
json_t *mcp_layer_changes(const struct mcp *mcp, const json_t *result);
char *mcp_layer_diff_text(const json_t *result);
