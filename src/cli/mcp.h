/* The options of `cordon mcp`, which cordon-server reads as well. */
#pragma once

#include "base/log.h"
#include "base/strv.h"
#include "cli/mcp_install.h"
#include "cli/options.h"
#include "cli/settings.h"
#include "rpc/transport/auth.h"

#include <stdbool.h>
#include <stdint.h>

enum { MCP_LISTEN_MAX = 16 };

/* Texts are borrowed from argv. */
struct mcp_run_options {
    struct strv listen; /* as given; none: standard input and output */
    struct rpc_auth_options auth;
    uint64_t session_idle_ns;     /* 0: not given */
    struct policy_options policy; /* of the sandbox that commands run in */
    const char *layer;            /* as config_mcp.layer; NULL: not given */
    unsigned at_end;              /* from 1, as enum config_mcp_at_end from 0; 0: not given */
    enum log_level log_level;
    enum log_form log_form;
    struct mcp_install_options install;
};

/* Fills in the defaults and reads the options, as command_parse(). mcp_options_done() by the caller. */
bool mcp_parse(char **argv, struct mcp_run_options *ret, int *ret_status);
void mcp_options_done(struct mcp_run_options *options);

struct mcp_extra;

/* cordon-server, called as `mcp`; `extra` as in mcp/mcp.h. */
int mcp_program(char **argv, const struct mcp_extra *extra);
