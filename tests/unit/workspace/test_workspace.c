/* Three faces, one workspace: what the command line, the library and the wire ask for, each in its
 * own words, comes to the same access map, plan and environment. */
#include "../base/support.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/strv.h"
#include "cli/settings.h"
#include "cordon.h"
#include "libcordon/engine.h"
#include "loop/loop.h"
#include "policy/profile_json.h"
#include "sandbox/linux/plan.h"
#include "server/sandbox_request.h"
#include "workspace/workspace.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *scratch; /* the workspace is W in it, Cordon's own directory is H */
static char dir[PATH_MAX];
static char home[PATH_MAX];
static char config[PATH_MAX + 16];

static int setup(void **state)
{
    AUTO_FREE char *text = NULL;

    scratch = support_scratch_new();
    snprintf(dir, sizeof dir, "%s/W", scratch);
    snprintf(home, sizeof home, "%s/H", scratch);
    snprintf(config, sizeof config, "%s/config.toml", home);
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(mkdir(home, 0700), 0);
    support_write(dir, "secret", "s");
    support_write(dir, ".git", "gitdir: /nowhere");
    text = alloc_strf("[permissions.dev.filesystem]\n"
                      "\":root\" = \"read\"\n"
                      "\":workspace_roots\" = \"write\"\n"
                      "\"%s/secret\" = \"deny\"\n"
                      "[permissions.dev.network]\n"
                      "enabled = true\n"
                      "[permissions.narrow.filesystem]\n"
                      "\":minimal\" = \"read\"\n"
                      "\":workspace_roots\" = \"write\"\n",
                      dir);
    support_write(home, "config.toml", text);
    setenv("CORDON_HOME", home, 1);
    return 0;
}

static int teardown(void **state)
{
    support_scratch_remove(scratch);
    return 0;
}

/* --- as text --- */

static void add_map(const struct access_map *map, struct buf *text)
{
    static const char *const kinds[] = {"missing", "dir", "file"};

    buf_appendf(text, "network %s\nrestricted %d\n", network_access_name(map->network),
                map->restricted);
    for (size_t i = 0; i < map->len; i++)
        buf_appendf(text, "%s %s %s%s\n", access_name(map->entries[i].access),
                    kinds[map->entries[i].kind], map->entries[i].path,
                    map->entries[i].is_protected ? " protected" : "");
    for (size_t i = 0; i < map->links_len; i++)
        buf_appendf(text, "%s -> %s\n", map->links[i].path, map->links[i].target);
}

/* Without the lines about protected names in /tmp, which other programs make and remove meanwhile.
 * Takes `text` over; caller frees. */
static char *without_shared(char *text)
{
    struct buf rest;
    char *at = text;

    buf_init(&rest, SIZE_MAX / 2);
    for (char *line; (line = strsep(&at, "\n"));)
        if (!strstr(line, " /tmp/."))
            buf_appendf(&rest, "%s\n", line);
    free(text);
    return buf_take(&rest);
}

/* What a command in it is held to. Caller frees. */
static char *to_text(const struct workspace *workspace)
{
    struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    buf_appendf(&text, "mode %d\n", (int)workspace->mode);
    add_map(&workspace->map, &text);
    for (size_t i = 0; i < workspace->roots.len; i++)
        buf_appendf(&text, "root %s\n", workspace->roots.items[i]);
    if (workspace->access)
        add_map(workspace->access, &text);
    if (workspace->access)
        plan_print(sandbox_plan(workspace->sandbox), &text);
    return without_shared(buf_take(&text));
}

static char *env_text(const struct workspace *workspace)
{
    struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    for (size_t i = 0; i < workspace->env.len; i++)
        buf_appendf(&text, "%s\n", workspace->env.items[i]);
    return buf_take(&text);
}

/* --- the faces --- */

struct faces {
    struct settings settings;
    struct cordon_engine *engine;
    struct loop *loop;
    struct workspaces *served;
};

static struct workspace *by_options(struct faces *faces, const char *profile)
{
    const struct policy_options options = {.profile = profile, .config = config, .directory = dir};
    struct err err;

    if (settings_init(&faces->settings, &options, &err) ||
        workspace_open(faces->settings.workspace, &err))
        fail_msg("%s", err.msg);
    return faces->settings.workspace;
}

static struct workspace *by_policy(struct faces *faces, const char *profile)
{
    const struct cordon_policy policy = {
        .size = sizeof policy, .profile = profile, .workspace = dir};
    const struct cordon_engine_options options = {
        .size = sizeof options, .config = config, .policy = &policy};
    struct workspace *workspace;
    struct cordon_error error;
    struct err err;

    if (cordon_open(&options, &faces->engine, &error))
        fail_msg("%s", error.message);
    workspace = policy_workspace(faces->engine, &policy, &err);
    assert_non_null(workspace);
    assert_ptr_equal(workspace, policy_workspace(faces->engine, NULL, &err));
    return workspace;
}

/* A client says the profile itself, without what its entries were written in. */
static struct workspace *by_object(struct faces *faces, const struct workspace *like)
{
    AUTO_JSON json_t *object =
        json_pack("{s:o, s:s, s:[s]}", "permissions", profile_to_json(&like->profile),
                  "windowsSandboxLevel", "disabled", "workspaceRoots", dir);
    const struct sandbox_call call = {.sandbox = object, .cwd = dir, .tmpdir = getenv("TMPDIR")};
    struct workspace *workspace;
    enum rpc_code code;
    struct err err;

    faces->loop = loop_new(&err);
    faces->served = sandbox_workspaces_new(faces->loop, strv_view(&faces->settings.file.own_paths),
                                           (char *const[]){NULL});
    workspace = workspace_for_call(faces->served, &call, &code, &err);
    if (!workspace)
        fail_msg("%s", err.msg);
    assert_ptr_equal(workspace, workspace_for_call(faces->served, &call, &code, &err));
    return workspace;
}

static void faces_done(struct faces *faces)
{
    workspaces_free(faces->served);
    loop_free(faces->loop);
    cordon_close(faces->engine);
    settings_done(&faces->settings);
}

static void compare(const char *profile)
{
    AUTO(faces_done) struct faces faces = {.engine = NULL};
    const struct workspace *cli = by_options(&faces, profile);
    const struct workspace *library = by_policy(&faces, profile);
    const struct workspace *server = by_object(&faces, cli);
    AUTO_FREE char *of_cli = to_text(cli);
    AUTO_FREE char *of_library = to_text(library);
    AUTO_FREE char *of_server = to_text(server);
    AUTO_FREE char *env_of_cli = env_text(cli);
    AUTO_FREE char *env_of_library = env_text(library);

    assert_string_equal(of_cli, of_library);
    assert_string_equal(of_cli, of_server);
    assert_string_equal(env_of_cli, env_of_library);
}

static void every_face_comes_to_the_same(void **state)
{
    static const char *const profiles[] = {
        "read-only", "workspace-write", "danger-full-access", ":workspace", "dev", "narrow"};

    for (size_t i = 0; i < sizeof profiles / sizeof *profiles; i++)
        compare(profiles[i]);
}

/* --- what it means later --- */

static void what_has_changed_on_the_host_is_picked_up(void **state)
{
    AUTO(faces_done) struct faces faces = {.engine = NULL};
    const struct workspace *before = by_policy(&faces, "dev"); /* it has no /tmp */
    const struct workspace *after;
    struct err err;

    support_write(dir, ".codex", "was kept missing");
    after = policy_workspace(faces.engine, NULL, &err);
    assert_non_null(after);
    assert_ptr_not_equal(before, after);
    assert_int_equal(
        access_map_exact(&after->map, strcat(dir, "/.codex"))->kind, /* allow strcat: it fits */
        ACCESS_FILE);
    assert_ptr_equal(after, policy_workspace(faces.engine, NULL, &err));
}

static void a_derived_one_differs_in_what_was_agreed_to(void **state)
{
    AUTO(faces_done) struct faces faces = {.engine = NULL};
    struct workspace *like = by_options(&faces, "workspace-write");
    const struct profile_overlay overlay = {.network = OVERLAY_NETWORK_ENABLED};
    struct err err;
    struct workspace *wide = workspace_derive(like, &overlay, &err);
    struct workspace *bare = workspace_derive(like, NULL, &err);

    assert_non_null(wide);
    assert_non_null(bare);
    assert_int_equal(like->access->network, NETWORK_RESTRICTED);
    assert_int_equal(wide->access->network, NETWORK_ENABLED);
    assert_string_equal(wide->network_from, "an approval");
    assert_int_equal(wide->map.len, like->map.len);
    assert_null(bare->access);
    assert_int_equal(bare->mode, SANDBOX_DISABLED);
    workspace_release(wide);
    workspace_release(bare);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(every_face_comes_to_the_same),
        IN_SCRATCH(what_has_changed_on_the_host_is_picked_up),
        IN_SCRATCH(a_derived_one_differs_in_what_was_agreed_to),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
