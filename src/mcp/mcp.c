/* See mcp.h. Here is what is the same for all sessions: what the server says of itself. */
#include "mcp/mcp.h"

#include "base/alloc.h"
#include "mcp/codex_state.h"
#include "mcp/engine.h"
#include "mcp/layer.h"
#include "policy/config/config.h"
#include "rpc/rpc.h"
#include "server/server.h"

#include <stdlib.h>
#include <sys/random.h>

static const char instructions[] =
    "Commands run in Cordon's sandbox: what the user's configuration permits works, everything "
    "else is refused and "
    "told as a denial with the rule that decided and what would allow it. A denial is an answer, "
    "not an obstacle: do not work "
    "around it; say what is needed, or go on without. Options in it (--writable DIR) are the "
    "user's to add to `cordon mcp` in the client's configuration. "
    "exec_command runs shell text and returns when it has ended or yield_time_ms is over; a "
    "command that goes on has a "
    "session_id, for write_stdin (input, U+0003 interrupts; empty chars poll), wait_for (its end, "
    "a text, or silence), "
    "read_screen (with tty) and terminate_session. explain_permissions says beforehand what may be "
    "read, written, run and "
    "reached. apply_patch changes files whole or not at all.";

static const char in_layer[] =
    " What commands and patches write goes to a change layer: the commands that follow see it, the "
    "user's own files stay as they are until the user accepts. layer_changes and layer_diff show "
    "it, "
    "layer_drop throws parts of it away, and layer_accept asks the user to take it.";

struct mcp *mcp_new(const struct mcp_options *options, struct err *err)
{
    struct mcp *mcp = alloc_zero(1, sizeof *mcp);
    const struct rpc_hub_options hub = {
        .handlers = &mcp_engine_handlers, .data = mcp, .takes_nul = true};

    mcp->options = *options;
    if (!options->yield_max_ms)
        mcp->options.yield_max_ms = MCP_YIELD_MS;
    mcp->loop = options->server->loop;
    if (getrandom(mcp->key, sizeof mcp->key, 0) != sizeof mcp->key) {
        err_sys(err, "getting random bytes");
        free(mcp);
        return NULL;
    }
    mcp->engines = rpc_hub_new(mcp->loop, &hub);
    return mcp;
}

void mcp_free(struct mcp *mcp)
{
    if (!mcp)
        return;
    mcp_layer_close(mcp);
    rpc_hub_free(mcp->engines);
    free(mcp);
}

const struct config_mcp *mcp_config(const struct mcp *mcp)
{
    const struct server *server = mcp->options.server;

    return config_mcp(server ? server->config.file : NULL); /* tests have none */
}

json_t *mcp_capabilities(const struct mcp *mcp)
{
    const struct mcp_extra *extra = mcp->options.extra;
    json_t *capabilities = json_pack("{s:{}, s:{}, s:{}, s:{s:b, s:b}}", "tools", "logging",
                                     "completions", "resources", "subscribe", 1, "listChanged", 1);
    const struct config_mcp *config = mcp_config(mcp);
    json_t *more = extra && extra->capabilities ? json_loads(extra->capabilities, 0, NULL) : NULL;

    if (config->sandbox == CONFIG_MCP_SANDBOX_NARROW)
        json_object_set_new(capabilities, "experimental", json_pack("{s:{}}", MCP_CODEX_STATE));
    json_object_update(capabilities, more);
    json_decref(more);
    return capabilities;
}

json_t *mcp_server_info(const struct mcp *mcp)
{
    return json_pack("{s:s, s:s, s:s}", "name", "cordon", "title", "Cordon", "version",
                     mcp->options.version);
}

json_t *mcp_instructions(const struct mcp *mcp)
{
    return json_sprintf("%s%s", instructions, mcp->layer ? in_layer : "");
}
