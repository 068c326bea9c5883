/* What Codex says of its own sandbox with every call of a tool, when it is told that we want to know: params._meta
 * ["codex/sandbox-state-meta"] = {"permissionProfile", "sandboxCwd", ...} (Codex 0.169.0). It is used to narrow, and is never
 * believed to widen. Pure. */
#pragma once

#include "base/err.h"

#include <jansson.h>

#define MCP_CODEX_STATE "codex/sandbox-state-meta"

struct mcp_codex_state {
    const json_t *
        profile; /* of profile_from_json(), borrowed from the call; NULL: it says nothing of itself */
    char *cwd;   /* absolute, clean; NULL: not said */
};

void mcp_codex_state_done(struct mcp_codex_state *state);

/* `meta`: params._meta, or NULL. -1: there is a state, and it cannot be read; `ret` is empty then. */
int mcp_codex_state_read(const json_t *meta, struct mcp_codex_state *ret, struct err *err);
