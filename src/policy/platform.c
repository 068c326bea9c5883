/* See platform.h. These entries only fill gaps, so that what the user wrote about such a folder, or
 * one above it, stays as it is. */
#include "policy/platform.h"

#include "base/auto.h"
#include "policy/path_walk.h"
#include "policy/protect.h"

/* spec/sandboxing.md 3.5, and the 32-bit ones; folders come before symlinks that lead into them */
static const char *const platform_roots[] = {
    "/usr",   "/etc",   "/bin",    "/sbin",      "/lib",
    "/lib64", "/lib32", "/libx32", "/nix/store", "/run/current-system/sw",
};

static int platform_add_root(struct access_map *map, const struct host_view *view, const char *path,
                             const char *origin, struct err *err)
{
    AUTO(path_walk_done) struct path_walk walk = {0};

    if (path_walk(view, path, &walk, err))
        return -1;
    if (walk.end != PATH_FOUND)
        return 0;
    for (size_t i = 0; i < walk.links_len; i++)
        access_map_add_link(map, walk.links[i].path, walk.links[i].target);
    if (access_map_find(map, walk.path))
        return 0;
    if (protect_check_links(map, path, walk.links, walk.links_len, err))
        return err_wrap(err, "%s", origin);
    access_map_add(map, walk.path, ACCESS_READ, walk.kind, origin);
    access_map_sort(map);
    return 0;
}

int platform_add_roots(struct access_map *map, const struct host_view *view, const char *origin,
                       struct err *err)
{
    for (size_t i = 0; i < sizeof platform_roots / sizeof *platform_roots; i++)
        if (platform_add_root(map, view, platform_roots[i], origin, err))
            return -1;
    return 0;
}
