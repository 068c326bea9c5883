/* See codex_state.h. What names programs (codexLinuxSandboxExe, the launcher) is not looked at. */
#include "mcp/codex_state.h"

#include "base/auto.h"
#include "base/file_uri.h"
#include "base/path.h"
#include "base/strv.h"
#include "policy/profile.h"
#include "policy/profile_json.h"

#include <stdlib.h>

void mcp_codex_state_done(struct mcp_codex_state *state)
{
    free(state->cwd);
    *state = (struct mcp_codex_state){0};
}

/* NULL when it is none. */
static char *read_cwd(const json_t *state)
{
    const char *uri = json_string_value(json_object_get(state, "sandboxCwd"));
    struct err ignored; /* the workspace stands in for it */
    AUTO_FREE char *path = uri ? file_uri_parse(uri, &ignored) : NULL;

    return path ? path_clean("/", path) : NULL;
}

int mcp_codex_state_read(const json_t *meta, struct mcp_codex_state *ret, struct err *err)
{
    const json_t *state = json_object_get(meta, MCP_CODEX_STATE);
    const json_t *profile = json_object_get(state, "permissionProfile");
    AUTO(profile_done) struct profile read = {0};
    AUTO(strv_done) struct strv ignored = {0};

    *ret = (struct mcp_codex_state){0};
    if (!state || json_is_null(state))
        return 0;
    if (!json_is_object(profile))
        return err_set(err, ERR_INVALID, "%s has no permissionProfile", MCP_CODEX_STATE);
    if (profile_from_json(profile, &ignored, &read, err))
        return err_wrap(err, "%s: permissionProfile", MCP_CODEX_STATE);
    ret->profile = profile;
    ret->cwd = read_cwd(state);
    return 0;
}
