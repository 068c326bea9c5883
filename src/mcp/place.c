/* See place.h, and tools.h for what tools get of it. */
#include "mcp/place.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/file_uri.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "mcp/ask.h"
#include "mcp/codex_state.h"
#include "mcp/mcp.h"
#include "mcp/roots.h"
#include "mcp/session.h"
#include "mcp/tools.h"
#include "policy/host_view.h"
#include "server/server.h"
#include "workspace/workspace.h"

#include <stdlib.h>

/* --- roots --- */

static void tell(struct mcp_session *session, const char *text)
{
    if (session->level <= MCP_LEVEL_WARNING)
        mcp_session_notify(session, "notifications/message",
                           json_pack("{s:s, s:s, s:o}", "level", "warning", "logger", "roots",
                                     "data", json_lossy(text)));
}

static void take_roots(struct mcp_session *session, const json_t *result)
{
    const struct server *server = session->mcp->options.server;
    const struct mcp_roots_rule rule = {
        .roots = mcp_config(session->mcp)->roots,
        .workspace = session->mcp->options.cwd,
        .home = server->config.home,
        .own_paths = workspaces_own_paths(server->workspaces),
        .view = &host_view_real,
    };
    AUTO(strv_done) struct strv refused = {0};

    strv_done(&session->roots);
    mcp_roots_judge(result, &rule, &session->roots, &refused);
    for (size_t i = 0; i < refused.len; i++)
        tell(session, refused.items[i]);
}

static void on_roots(void *data, const struct mcp_message *answer)
{
    struct mcp_session *session = data;

    session->roots_question = 0;
    if (answer && answer->kind == MCP_RESULT)
        take_roots(session, answer->result);
}

/* What is asked again has changed since. */
static void ask_for_roots(struct mcp_session *session, const struct mcp_message *message)
{
    const struct mcp_question question = {
        .method = "roots/list", .params = json_object(), .on_answer = on_roots, .data = session};

    if (mcp_config(session->mcp)->roots == CONFIG_MCP_ROOTS_IGNORE || !session->is_initialized ||
        !json_is_object(json_object_get(session->capabilities, "roots"))) {
        json_decref(question.params);
        return;
    }
    if (session->roots_question)
        mcp_session_withdraw(session, session->roots_question, "the roots have changed");
    session->roots_question = mcp_session_ask(session, &question);
}

const struct mcp_method mcp_place_methods[] = {
    {.name = "notifications/initialized", .eras = MCP_LEGACY, .take = ask_for_roots},
    {.name = "notifications/roots/list_changed", .eras = MCP_LEGACY, .take = ask_for_roots},
    {NULL},
};

void mcp_place_done(struct mcp_session *session)
{
    strv_done(&session->roots);
}

/* --- of a call --- */

static const char *workspace_of(const struct mcp_call *call)
{
    const struct strv *roots = &call->session->roots;

    return roots->len ? roots->items[0] : call->session->mcp->options.cwd;
}

static bool is_in_workspace(const struct mcp_call *call, const char *path)
{
    const struct strv *roots = &call->session->roots;

    for (size_t i = 0; i < roots->len; i++)
        if (path_is_within(path, roots->items[i]))
            return true;
    return !roots->len && path_is_within(path, call->session->mcp->options.cwd);
}

/* What cannot be read is told, and does not count: what the user's configuration says holds in any case. */
static void read_state(struct mcp_call *call, struct mcp_codex_state *ret, bool tells)
{
    struct err err;

    *ret = (struct mcp_codex_state){0};
    if (mcp_config(call->session->mcp)->sandbox == CONFIG_MCP_SANDBOX_NARROW &&
        mcp_codex_state_read(json_object_get(call->params, "_meta"), ret, &err) && tells)
        mcp_call_log(
            call, MCP_LEVEL_WARNING, "sandbox",
            json_sprintf("%s; commands run in the sandbox of Cordon's configuration", err.msg));
}

/* A client that has a directory of its own for commands has it for those that name none. */
char *mcp_tool_dir(struct mcp_call *call, const char *dir)
{
    AUTO(mcp_codex_state_done) struct mcp_codex_state state;
    const char *base;
    AUTO_FREE char *path = NULL;

    read_state(call, &state, false);
    base = state.cwd && is_in_workspace(call, state.cwd) ? state.cwd : workspace_of(call);
    path = path_clean(base, dir ? dir : ".");
    return file_uri_format(path);
}

static json_t *roots_to_json(const struct strv *roots)
{
    json_t *list = roots->len ? json_array() : NULL;

    for (size_t i = 0; i < roots->len; i++) {
        AUTO_FREE char *uri = file_uri_format(roots->items[i]);

        json_array_append_new(list, json_string(uri));
    }
    return list;
}

/* Where nothing can be held, because the person who started this program wants no sandbox, nothing can be narrowed. */
static bool is_disabled(const struct mcp_session *session)
{
    const char *mode = json_string_value(json_object_get(session->mcp->options.sandbox, "mode"));

    return mode && str_eq(mode, "disabled");
}

json_t *mcp_tool_sandbox(struct mcp_call *call)
{
    const struct mcp_session *session = call->session;
    AUTO(mcp_codex_state_done) struct mcp_codex_state state;
    json_t *sandbox = json_copy((json_t *)session->mcp->options.sandbox);
    json_t *roots = roots_to_json(&session->roots);
    AUTO_FREE char *workspace = file_uri_format(session->mcp->options.cwd);

    read_state(call, &state, true);
    if (roots) {
        json_object_set_new(sandbox, "roots", roots);
        if (mcp_config(session->mcp)->roots == CONFIG_MCP_ROOTS_NARROW)
            json_object_set_new(sandbox, "within", json_string(workspace));
    }
    if (state.profile && !is_disabled(session))
        json_object_set(sandbox, "narrow", (json_t *)state.profile);
    if (mcp_config(session->mcp)->approvals == CONFIG_MCP_APPROVALS_ASK && mcp_ask_can(call))
        json_object_set_new(sandbox, "watch", json_string("ask"));
    return sandbox;
}
