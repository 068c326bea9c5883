/* What a client of MCP says of itself: its roots, and the sandbox that Codex has. Beside memory errors: no root is taken that is
 * not below the workspace ("narrow"), or is the disk or contains the home directory ("trust"); and a state that was read can be
 * read again. */
#include "fuzz.h"

#include "base/auto.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "mcp/codex_state.h"
#include "mcp/roots.h"
#include "policy/host_view.h"

#include <stdlib.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* Everything is a directory. */
static int kind_of(const struct host_view *view, const char *path, enum host_kind *ret,
                   struct err *err)
{
    *ret = HOST_DIR;
    return 0;
}

static void try_roots(const json_t *json, enum config_mcp_roots mode)
{
    const struct host_view view = {.kind = kind_of};
    const struct mcp_roots_rule rule = {
        .roots = mode, .workspace = "/w", .home = "/home/u", .view = &view};
    AUTO(strv_done) struct strv roots = {0};
    AUTO(strv_done) struct strv refused = {0};

    mcp_roots_judge(json, &rule, &roots, &refused);
    for (size_t i = 0; i < roots.len; i++) {
        const char *root = roots.items[i];

        check(path_is_clean(root) && !str_eq(root, "/"));
        check(mode == CONFIG_MCP_ROOTS_NARROW ? path_is_within(root, "/w")
                                              : !path_is_within("/home/u", root));
    }
}

static void try_state(const json_t *json)
{
    AUTO(mcp_codex_state_done) struct mcp_codex_state state;
    struct err err;

    if (mcp_codex_state_read(json, &state, &err))
        check(!state.profile && !state.cwd && *err.msg);
    else if (state.profile)
        check(json_is_object(state.profile) && (!state.cwd || path_is_clean(state.cwd)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_JSON json_t *json = NULL;
    struct err err;

    json = json_parse((const char *)data, size, &err);
    if (!json)
        return 0;
    try_roots(json, CONFIG_MCP_ROOTS_NARROW);
    try_roots(json, CONFIG_MCP_ROOTS_TRUST);
    try_state(json);
    return 0;
}
