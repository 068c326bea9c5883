/* See tmp_folders.h. */
#include "policy/tmp_folders.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "policy/host_view.h"
#include "policy/profile.h"
#include "policy/resolve.h"

#include <stdlib.h>

bool tmp_folders_hide(const struct access_map *before, const struct access_entry *entry)
{
    return !entry->source && access_map_is_private(before, entry->path) &&
           (entry->access == ACCESS_DENY || entry->kind == ACCESS_MISSING);
}

/* The workspace roots without an entry of their own, with the access that they have by others: they are
 * seen, too, when they lie in a private folder. */
static int find_shown_roots(const struct resolve_context *context, const struct access_map *map,
                            struct access_map *ret, struct err *err)
{
    for (char *const *root = context->workspace_roots; root && *root; root++) {
        AUTO_FREE char *clean = path_clean("/", *root);
        AUTO(path_walk_done) struct path_walk walk = {0};
        enum access access;

        if (path_walk(context->view, clean, &walk, err))
            return -1;
        access = access_map_check(map, walk.path);
        if (walk.end == PATH_FOUND && walk.kind == ACCESS_DIR && access != ACCESS_DENY &&
            !access_map_exact(map, walk.path))
            access_map_add(ret, walk.path, access, walk.kind, "workspace root");
    }
    return 0;
}

int tmp_folders_add(const struct profile *profile, const struct resolve_context *context,
                    struct access_map *map, struct err *err)
{
    static const char *const places[][2] = {{"/tmp", "tmp"}, {"/var/tmp", "var-tmp"}};
    const char *store = context->tmp_store;
    AUTO(access_map_done) struct access_map shown = {0};

    if (profile->tmp != PROFILE_TMP_PRIVATE)
        return 0;
    if (find_shown_roots(context, map, &shown, err))
        return -1;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        AUTO(path_walk_done) struct path_walk walk = {0};
        struct access_entry *entry;

        if (path_walk(context->view, places[i][0], &walk, err))
            return -1;
        if (walk.end != PATH_FOUND || walk.kind != ACCESS_DIR || access_map_exact(map, walk.path))
            continue;
        for (size_t j = 0; j < walk.links_len; j++)
            access_map_add_link(map, walk.links[j].path, walk.links[j].target);
        entry =
            access_map_add(map, walk.path, ACCESS_WRITE, ACCESS_DIR, "private temporary folder");
        entry->source = store ? path_join(store, places[i][1]) : alloc_str("");
        access_map_sort(map);
    }
    for (size_t i = 0; i < shown.len; i++)
        if (access_map_is_private(map, shown.entries[i].path))
            access_map_add(map, shown.entries[i].path, shown.entries[i].access, ACCESS_DIR,
                           shown.entries[i].origin);
    access_map_sort(map);
    return 0;
}
