/* Cordon as a server of MCP, the Model Context Protocol: all of one process.
 *
 *     mcp_new(&options)                      on the loop of the server that its commands run in
 *     mcp_stdio_new(mcp) or mcp/http         transports; each makes a session per client (session.h)
 *     server_run(options.server)
 *     transports first, then mcp_free(mcp), then the server
 *
 * How the rest fits in, so that a new part is a file and a row:
 *
 *     a tool        schema/mcp/NAME.json and a handler tool_NAME() in a tool_*.c (tools.h)
 *     a method      a row in a table of struct mcp_method (session.h), which session.c lists
 *     a transport   a struct mcp_sender, and the calls of session.h
 */
#pragma once

#include "base/err.h"
#include "base/list.h"

#include <jansson.h>
#include <stdint.h>

struct config_mcp;
struct loop;
struct mcp_layer;
struct mcp_method;
struct rpc_hub;
struct mcp_tool;
struct server;

#define MCP_YIELD_MS 50000 /* clients give a tool 60 s, unless told otherwise */

/* What a program of the tests has besides (tests/e2e/mcp_everything.c); the product has none. */
struct mcp_extra {
    const struct mcp_tool *tools;     /* ended by one without a name; NULL: none */
    const struct mcp_method *methods; /* likewise; they come before those of the product */
    const char *capabilities;         /* JSON: an object, added to ours; NULL: none */
};

struct mcp_options {
    struct server *server; /* borrowed: its loop is used, and its commands are ours */
    const char *cwd;       /* absolute, borrowed: where commands start that name no directory */
    const json_t *
        sandbox; /* of commands, borrowed: as the engine takes it (docs/protocol.md), with `cwd` in it */
    uint64_t yield_max_ms;         /* that a tool waits at most; 0: MCP_YIELD_MS */
    const char *version;           /* of this program, borrowed */
    const struct mcp_extra *extra; /* borrowed; NULL in the product */
};

struct mcp {
    struct mcp_options options;
    struct loop *loop;       /* of the server */
    struct rpc_hub *engines; /* our ends of the connections to it (engine.h) */
    struct mcp_layer *layer; /* layer.h; NULL: none */
    struct list sessions;
    uint64_t sessions_made;
    uint8_t key[32]; /* random: what modern.c signs with */
};

/* `options` is copied; what it borrows has to live as long. NULL on failure. */
struct mcp *mcp_new(const struct mcp_options *options, struct err *err);

/* Every session has to be gone. */
void mcp_free(struct mcp *mcp);

/* [mcp] of the user's configuration, as it is now. */
const struct config_mcp *mcp_config(const struct mcp *mcp);

/* --- what a server says of itself; new references --- */

json_t *mcp_capabilities(const struct mcp *mcp);
json_t *mcp_server_info(const struct mcp *mcp);  /* serverInfo */
json_t *mcp_instructions(const struct mcp *mcp); /* a text for models */
