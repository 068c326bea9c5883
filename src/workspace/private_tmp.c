/* See private_tmp.h. */
#include "workspace/private_tmp.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/host_view.h"
#include "workspace/workspace.h"

#include <stdlib.h>

void private_tmp_open(const struct workspace *workspace, bool trusts_links, struct tmp_store *ret)
{
    const struct profile *profile = &workspace->profile;
    AUTO_FREE char *root =
        profile->tmp == PROFILE_TMP_PRIVATE ? workspace_known_by(workspace) : NULL;

    if (profile->kind == PROFILE_MANAGED && profile->files == PROFILE_FILES_RESTRICTED)
        tmp_store_open(root, trusts_links, ret);
}

void private_tmp_hide(const struct tmp_store *tmp, struct access_map *map)
{
    if (!map->restricted || !tmp->base || access_map_is_private(map, tmp->base) ||
        !access_map_is_open_within(map, tmp->base, ACCESS_DENY))
        return;
    access_map_close(map, tmp->base, ACCESS_DIR, "private temporary folders of workspaces");
    access_map_exact(map, tmp->base)->is_others_tmp = true;
}

/* $TMPDIR of the caller may be a place that the command does not have. */
static bool is_tmpdir_inside(const struct workspace *workspace, const char *tmpdir)
{
    AUTO_FREE char *clean = path_clean("/", tmpdir);
    AUTO(path_walk_done) struct path_walk walk = {0};
    struct err ignored;

    if (!*tmpdir)
        return true;
    if (workspace->layer && access_map_is_private(&workspace->map, clean))
        return str_eq(clean, "/tmp") || str_eq(clean, "/var/tmp");
    if (access_map_is_private(&workspace->map, clean))
        return tmp_store_make_dir(&workspace->tmp, clean);
    return path_walk(&host_view_real, clean, &walk, &ignored) == 0 && walk.end == PATH_FOUND &&
           access_map_check_host(&workspace->map, walk.path) == ACCESS_WRITE;
}

void private_tmp_settle_variable(struct workspace *workspace)
{
    static const char name[] = "TMPDIR=";
    struct environment_report *report = &workspace->env_report;
    char **variable = NULL;

    for (size_t i = 0; !variable && i < workspace->env.len; i++)
        if (str_starts(workspace->env.items[i], name))
            variable = &workspace->env.items[i];
    if (!variable || workspace->profile.tmp != PROFILE_TMP_PRIVATE || !workspace->map.restricted ||
        !access_map_is_private(&workspace->map, "/tmp"))
        return;
    for (size_t i = 0; i < report->len; i++) {
        struct environment_note *note = &report->notes[i];

        if (!str_eq(note->name, "TMPDIR") || note->reason != ENVIRONMENT_INHERITED ||
            is_tmpdir_inside(workspace, *variable + sizeof name - 1))
            continue;
        note->reason = ENVIRONMENT_ADDED;
        free(*variable);
        *variable = alloc_strf("%s/tmp", name);
        return;
    }
}
