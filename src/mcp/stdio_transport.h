/* MCP over standard input and output: one message per line, one session. */
#pragma once

#include "base/err.h"

struct mcp;
struct mcp_stdio;

/* Takes descriptors 0 and 1. `on_end(data)`: there is nothing more to read, and what was
 * asked before is answered, or was given a second for it; or nobody reads us. The session is gone then. NULL on failure. */
struct mcp_stdio *mcp_stdio_new(struct mcp *mcp, void (*on_end)(void *data), void *data,
                                struct err *err);
void mcp_stdio_free(struct mcp_stdio *stdio);
