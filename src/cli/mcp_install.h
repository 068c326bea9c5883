/* `cordon mcp install`: the entry of the MCP server in the configuration of a client. */
#pragma once

#include "cli/client_setup.h"
#include "cli/options.h"

struct mcp_install_options {
    struct client_options client;
    const char *url;
    const char *token_env;
    bool is_project;
    bool is_approved;
};

/* Any of them was given. */
bool mcp_install_is_given(const struct mcp_install_options *options);

extern const struct option mcp_install_rows[]; /* of a struct mcp_install_options */

/* For the client of this name (NULL: looks at all); an exit status. `server` has the options that the server is to get. */
int mcp_install(const struct mcp_install_options *options, const struct client_server *server,
                const char *name);
