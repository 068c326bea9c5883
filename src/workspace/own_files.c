/* See own_files.h.
 *
 * What rules the next command is read outside of every sandbox. Writing there would widen the next one, so it is
 * held, by the path that people know and by the one that links lead to: many keep their settings in a repository,
 * which is a workspace as soon as they work on it.
 *
 * Secrets are files that tokens are made of. Who can read one can be a client of the server, and a
 * client needs no sandbox. An entry for a file that is not there would have every creation around it
 * asked about, so only what is there is hidden. It is no defence where files are not restricted at all. */
#include "workspace/own_files.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/strv.h"
#include "base/user_token.h"
#include "policy/access.h"
#include "policy/host_view.h"
#include "policy/protect.h"
#include "rules/rules_disk.h"
#include "workspace/presets.h"

#include <stdbool.h>
#include <stdlib.h>

/* --- what rules the next command --- */

int own_files_hide(const struct strv *own, const struct host_view *view, struct access_map *map,
                   struct err *err)
{
    for (size_t i = 0; map->restricted && i < own->len; i++) {
        AUTO_FREE char *path = path_join(own->items[i], USER_TOKEN_DIR);
        AUTO(path_walk_done) struct path_walk walk = {0};

        if (path_walk(view, path, &walk, err))
            return err_wrap(err, "what Cordon keeps to itself");
        if ((walk.end == PATH_FOUND || walk.end == PATH_HIDDEN) &&
            !access_map_is_private(map, walk.path))
            access_map_close(map, walk.path, walk.kind, "Cordon keeps it to itself");
    }
    return 0;
}

static bool is_held(const char *path, const struct strv *held)
{
    for (size_t i = 0; i < held->len; i++)
        if (path_is_within(path, held->items[i]))
            return true;
    return false;
}

/* What rules the next command must not be writable by way of a link either: what it leads to is held, and who
 * could turn it gets no sandbox. */
static int guard_path(const char *path, const struct access_map *map, struct strv *ret,
                      struct err *err)
{
    AUTO(path_walk_done) struct path_walk walk = {0};

    if (path_walk(&host_view_real, path, &walk, err))
        return err_wrap(err, "Cordon's configuration");
    for (size_t i = 0; i < walk.links_len; i++)
        if (!is_held(walk.links[i].path, ret) &&
            protect_check_links(map, path, &walk.links[i], 1, err))
            return err_wrap(err, "Cordon's configuration");
    strv_push(ret, walk.path);
    return 0;
}

/* The same of the files in a folder, which people keep elsewhere by links, too: by one for the folder, or by
 * one for each. */
static int guard_folder(const char *folder, const struct access_map *map, struct strv *ret,
                        struct err *err)
{
    AUTO(host_listing_done) struct host_listing listing = {0};
    AUTO_FREE char *real = NULL;
    enum host_kind kind;
    struct err ignored; /* who reads the files tells of it */

    if (host_view_real.kind(&host_view_real, folder, &kind, &ignored) ||
        (kind != HOST_DIR && kind != HOST_SYMLINK))
        return 0;
    if (kind == HOST_SYMLINK && guard_path(folder, map, ret, err))
        return -1;
    real = realpath(folder, NULL);
    if (!real || host_view_real.list(&host_view_real, real, &listing, &ignored))
        return 0;
    for (size_t i = 0; i < listing.len; i++) {
        AUTO_FREE char *path = path_join(real, listing.items[i].name);

        if (listing.items[i].kind == HOST_SYMLINK && guard_path(path, map, ret, err))
            return -1;
    }
    return 0;
}

int own_files_guard(const struct strv *own, const struct access_map *map, struct strv *ret,
                    struct err *err)
{
    for (size_t i = 0; i < own->len; i++) {
        AUTO_FREE char *rules = path_join(own->items[i], RULES_DIR);
        AUTO_FREE char *presets = path_join(own->items[i], PRESETS_DIR);

        if (guard_path(own->items[i], map, ret, err) || guard_folder(rules, map, ret, err) ||
            guard_folder(presets, map, ret, err))
            return -1;
    }
    return 0;
}

/* --- secrets, programs --- */

/* Only what is certainly not there is no secret to be hidden: the launch fails for one of which
 * nothing can be told. */
static bool is_there(const char *secret)
{
    enum host_kind kind;
    struct err ignored;

    return host_view_real.kind(&host_view_real, secret, &kind, &ignored) || kind != HOST_MISSING;
}

size_t own_files_hide_secrets(const struct strv *secrets, struct access_map *map)
{
    size_t count = 0;

    for (size_t i = 0; i < secrets->len; i++) {
        if (!is_there(secrets->items[i]))
            continue;
        count++;
        if (map && map->restricted && !access_map_is_private(map, secrets->items[i]))
            access_map_add(map, secrets->items[i], ACCESS_DENY, ACCESS_FILE,
                           "a secret of the server");
    }
    if (map)
        access_map_sort(map);
    return count;
}

void own_files_show(const char *program, const char *why, struct access_map *map)
{
    if (access_map_check_host(map, program) != ACCESS_DENY)
        return;
    access_map_add(map, program, ACCESS_READ, ACCESS_FILE, why);
    access_map_sort(map);
}
