/* See deny_glob.h.
 *
 * All patterns are expanded first, then the map is sorted once, and then the matched symlinks are
 * judged, so that neither the order of the patterns nor that of the matches decides anything. What
 * is created after the run has started is not denied; only a pattern "DIR/" and two stars, which
 * the resolver turns into a deny of the folder, covers that. */
#include "policy/deny_glob.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "policy/glob.h"
#include "policy/glob_expand.h"
#include "policy/host_view.h"
#include "policy/path_walk.h"
#include "policy/protect.h"

#include <stdlib.h>

struct deny_run {
    const struct host_view *view;
    unsigned max_depth;
    struct access_map *map;
    struct access_map denied; /* to be merged into the map */
    struct glob_hits hits;
};

void deny_globs_done(struct deny_globs *globs)
{
    for (size_t i = 0; i < globs->len; i++) {
        glob_free(globs->items[i].glob);
        free(globs->items[i].pattern);
        free(globs->items[i].origin);
    }
    free(globs->items);
    *globs = (struct deny_globs){0};
}

static void deny_run_done(struct deny_run *run)
{
    access_map_done(&run->denied);
    glob_hits_done(&run->hits);
}

int deny_globs_add(struct deny_globs *globs, const char *pattern, const char *origin,
                   struct err *err)
{
    struct glob *glob = glob_compile(pattern, err);

    if (!glob)
        return -1;
    globs->items = alloc_grow(globs->items, globs->len, &globs->cap, sizeof *globs->items);
    globs->items[globs->len++] = (struct deny_glob){
        .glob = glob, .pattern = alloc_str(pattern), .origin = alloc_str(origin)};
    return 0;
}

static void deny_merge(struct deny_run *run)
{
    access_map_add_all(run->map, &run->denied);
    access_map_sort(run->map);
    access_map_done(&run->denied);
}

/* Where the fixed part of a pattern is; NULL in `*ret` when nothing is there to match. */
static int deny_find_root(struct deny_run *run, const struct deny_glob *item, char **ret,
                          struct err *err)
{
    const char *prefix = glob_prefix(item->glob);
    AUTO(path_walk_done) struct path_walk walk = {0};

    *ret = NULL;
    if (path_walk(run->view, prefix, &walk, err) ||
        protect_check_links(run->map, prefix, walk.links, walk.links_len, err))
        return -1;
    if (walk.end == PATH_HIDDEN)
        access_map_add(&run->denied, walk.path, ACCESS_DENY, walk.kind, item->origin);
    if (walk.end == PATH_FOUND)
        *ret = TAKE_PTR(walk.path);
    return 0;
}

static int deny_expand(struct deny_run *run, const struct deny_glob *item, struct err *err)
{
    AUTO_FREE char *origin = alloc_strf("%s, pattern %s", item->origin, item->pattern);
    AUTO_FREE char *root = NULL;
    struct glob_walk walk = {.view = run->view,
                             .max_depth = run->max_depth,
                             .matches_max = DENY_GLOB_MATCHES_MAX,
                             .visits_max = DENY_GLOB_VISITS_MAX};
    size_t first = run->hits.len;

    if (deny_find_root(run, item, &root, err))
        return err_wrap(err, "%s", origin);
    walk.root = root;
    if (root && glob_expand(item->glob, &walk, &run->hits, err))
        return err_wrap(err, "%s", origin);
    for (size_t i = first; i < run->hits.len; i++) {
        const struct glob_hit *hit = &run->hits.items[i];

        if (hit->kind != HOST_SYMLINK)
            access_map_add(&run->denied, hit->path, ACCESS_DENY,
                           hit->kind == HOST_DIR ? ACCESS_DIR : ACCESS_FILE, origin);
    }
    return 0;
}

static int deny_link_target(struct deny_run *run, const char *path, struct err *err)
{
    AUTO(path_walk_done) struct path_walk walk = {0};
    AUTO_FREE char *origin = NULL;

    if (path_walk(run->view, path, &walk, err))
        return -1;
    if (walk.end != PATH_FOUND || access_map_check(run->map, walk.path) == ACCESS_DENY)
        return 0;
    if (protect_check_links(run->map, path, walk.links, walk.links_len, err))
        return -1;
    origin = alloc_strf("target of %s, which a pattern matches", path);
    access_map_add(&run->denied, walk.path, ACCESS_DENY, walk.kind, origin);
    return 0;
}

int deny_globs_apply(const struct deny_globs *globs, const struct host_view *view,
                     unsigned max_depth, struct access_map *map, struct err *err)
{
    AUTO(deny_run_done)
    struct deny_run run = {.view = view, .max_depth = max_depth, .map = map};

    for (size_t i = 0; i < globs->len; i++)
        if (deny_expand(&run, &globs->items[i], err))
            return -1;
    deny_merge(&run);
    for (size_t i = 0; i < run.hits.len; i++)
        if (run.hits.items[i].kind == HOST_SYMLINK &&
            deny_link_target(&run, run.hits.items[i].path, err))
            return err_wrap(err, "matched by a pattern");
    deny_merge(&run);
    return 0;
}
