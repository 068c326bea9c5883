/* The versions that begin with initialize: 2025-03-26, 2025-06-18, 2025-11-25. initialize, ping, logging/setLevel; what all
 * versions have is elsewhere. */
#include "mcp/mcp.h"
#include "mcp/session.h"

const struct mcp_dialect mcp_legacy = {.closing_cancels = false};

static void initialize(struct mcp_call *call)
{
    struct mcp_session *session = call->session;
    const json_t *asked = json_object_get(call->params, "protocolVersion");
    json_t *capabilities = json_object_get(call->params, "capabilities");
    json_t *client = json_object_get(call->params, "clientInfo");

    if (session->is_initialized) {
        mcp_call_fail(call, MCP_INVALID_REQUEST, "this session is initialized already");
        return;
    }
    if (!json_is_string(asked) || (capabilities && !json_is_object(capabilities))) {
        mcp_call_fail(
            call, MCP_INVALID_PARAMS,
            "initialize needs \"protocolVersion\", a string, and \"capabilities\", an object");
        return;
    }
    session->is_initialized = true;
    session->version = mcp_version_negotiate(json_string_value(asked));
    if (capabilities) {
        json_decref(session->capabilities);
        session->capabilities = json_incref(capabilities);
    }
    session->client = json_incref(json_is_object(client) ? client : NULL);
    mcp_call_result(call, json_pack("{s:s, s:o, s:o, s:o}", "protocolVersion",
                                    mcp_version_text(session->version), "capabilities",
                                    mcp_capabilities(session->mcp), "serverInfo",
                                    mcp_server_info(session->mcp), "instructions",
                                    mcp_instructions(session->mcp)));
}

static void ping(struct mcp_call *call)
{
    mcp_call_result(call, json_object());
}

static void set_level(struct mcp_call *call)
{
    const char *word = json_string_value(json_object_get(call->params, "level"));

    if (!word || !mcp_level_parse(word, &call->session->level)) {
        mcp_call_fail(call, MCP_INVALID_PARAMS,
                      "\"level\" should be one of debug, info, notice, warning, error, critical, "
                      "alert, emergency");
        return;
    }
    mcp_call_result(call, json_object());
}

const struct mcp_method mcp_legacy_methods[] = {
    {.name = "initialize", .eras = MCP_LEGACY, .is_early = true, .handle = initialize},
    {.name = "ping", .eras = MCP_LEGACY, .is_early = true, .handle = ping},
    {.name = "logging/setLevel", .eras = MCP_LEGACY, .handle = set_level},
    {NULL},
};
