/* See roots.h. A client says what its user has opened, and whoever makes it say something else (a page, a repository, another
 * server) must not gain by that: with "narrow" nothing outside of the workspace is ever taken, with "trust" nothing that other
 * programs believe or run, nor what contains the home directory, nor what is Cordon's. */
#include "mcp/roots.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/file_uri.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/believed.h"
#include "policy/host_view.h"

#include <stdlib.h>

/* The canonical path of what is there; NULL: nothing that can be seen. Caller frees. */
static char *canonical(const struct host_view *view, const char *path, enum access_kind *ret_kind)
{
    AUTO(path_walk_done) struct path_walk walk = {0};
    AUTO_FREE char *clean = path_clean("/", path);
    struct err ignored;

    if (path_walk(view, clean, &walk, &ignored) || walk.end != PATH_FOUND)
        return NULL;
    *ret_kind = walk.kind;
    return TAKE_PTR(walk.path);
}

static bool touches_own(const char *path, char *const *own)
{
    for (; own && *own; own++)
        if (path_is_within(path, *own) || path_is_within(*own, path))
            return true;
    return false;
}

/* Nobody works on what is there, but everything does by it. */
static bool is_systems(const char *path)
{
    static const char *const places[] = {"/boot", "/dev",  "/etc",     "/proc",    "/run",
                                         "/sys",  "/usr",  "/var/lib", "/var/log", "/var/spool",
                                         "/bin",  "/sbin", "/lib",     "/lib64"};

    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (path_is_within(path, places[i]) || path_is_within(places[i], path))
            return true;
    return false;
}

/* Why a canonical path is not taken; NULL: it is. */
static const char *refusal(const struct mcp_roots_rule *rule, const char *path)
{
    enum access_kind kind;
    AUTO_FREE char *workspace = canonical(rule->view, rule->workspace, &kind);
    AUTO_FREE char *home = rule->home ? canonical(rule->view, rule->home, &kind) : NULL;

    if (str_eq(path, "/"))
        return "it is the whole disk";
    if (rule->roots == CONFIG_MCP_ROOTS_NARROW)
        return workspace && path_is_within(path, workspace) ? NULL : "it is not in the workspace";
    if ((home && path_is_within(home, path)) || (rule->home && path_is_within(rule->home, path)))
        return "your home directory is in it";
    if (touches_own(path, rule->own_paths))
        return "it is Cordon's own, or that is in it";
    if (is_systems(path))
        return "it is the system's";
    if (!place_may_be_opened(path, home ? home : rule->home))
        return "other programs run or believe what is there";
    return NULL;
}

static void judge(const json_t *root, const struct mcp_roots_rule *rule, struct strv *ret_roots,
                  struct strv *ret_refused)
{
    const char *uri = json_string_value(json_object_get(root, "uri"));
    struct err err = {.msg = "it has no uri"};
    AUTO_FREE char *named = uri ? file_uri_parse(uri, &err) : NULL;
    enum access_kind kind = ACCESS_MISSING;
    AUTO_FREE char *path = named ? canonical(rule->view, named, &kind) : NULL;
    const char *why = !named               ? err.msg
                      : kind != ACCESS_DIR ? "there is no such directory"
                                           : refusal(rule, path);

    if (why)
        strv_pushf(ret_refused, "the root %.200s is not used: %s", uri ? uri : "without a uri",
                   why);
    else if (!strv_has(ret_roots, path))
        strv_push(ret_roots, path);
}

void mcp_roots_judge(const json_t *result, const struct mcp_roots_rule *rule,
                     struct strv *ret_roots, struct strv *ret_refused)
{
    const json_t *roots = json_object_get(result, "roots");

    if (rule->roots == CONFIG_MCP_ROOTS_IGNORE)
        return;
    for (size_t i = 0; i < json_array_size(roots) && i < MCP_ROOTS_MAX; i++)
        judge(json_array_get(roots, i), rule, ret_roots, ret_refused);
}
