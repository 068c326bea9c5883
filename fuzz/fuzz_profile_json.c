/* Permission profiles in JSON, and what they mean on a made-up host. Beside memory errors: what is
 * written is read as the same, and a resolved map keeps its promises (policy/access.h). */
#include "fuzz.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "base/strv.h"
#include "policy/host_view.h"
#include "policy/profile_json.h"
#include "policy/resolve.h"

#include <stdlib.h>
#include <string.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* --- a host that is made of the names alone: every path has a kind by its hash --- */

static uint32_t hash(const char *text)
{
    uint32_t value = 2166136261u; /* FNV-1a */

    for (; *text; text++)
        value = (value ^ (unsigned char)*text) * 16777619u;
    return value >> 7;
}

static int host_kind(const struct host_view *view, const char *path, enum host_kind *ret,
                     struct err *err)
{
    static const enum host_kind kinds[] = {HOST_DIR,     HOST_DIR,  HOST_DIR,   HOST_MISSING,
                                           HOST_SYMLINK, HOST_FILE, HOST_OTHER, HOST_DIR};

    *ret = path[1] ? kinds[hash(path) % 8] : HOST_DIR;
    if (*ret == HOST_DIR && hash(path) % 61 == 0)
        *ret = HOST_HIDDEN;
    return 0;
}

static char *host_link(const struct host_view *view, const char *path, struct err *err)
{
    static const char *const targets[] = {"/w", "..", "a", "/tmp/b/../c", "../../x", "/", "b/.git"};

    return alloc_str(targets[hash(path) / 8 % 7]);
}

static int host_list(const struct host_view *view, const char *path, struct host_listing *ret,
                     struct err *err)
{
    static const char *const names[] = {"a", "b", "c.pem"};

    *ret = (struct host_listing){0};
    if (hash(path) % 13 == 0)
        return err_set(err, ERR_FORBIDDEN, "closed");
    for (size_t i = 0; i < 3 && path_depth(path) < 5; i++) {
        AUTO_FREE char *child = path_join(path, names[i]);
        enum host_kind kind = HOST_MISSING;

        host_kind(view, child, &kind, err);
        if (kind == HOST_MISSING)
            continue;
        ret->items = alloc_grow(ret->items, ret->len, &ret->cap, sizeof *ret->items);
        ret->items[ret->len++] = (struct host_item){.name = alloc_str(names[i]), .kind = kind};
    }
    return 0;
}

static int host_text(const struct host_view *view, const char *path, size_t max, struct buf *ret,
                     struct err *err)
{
    static const char *const texts[] = {"gitdir: ../a\n", "gitdir: /tmp/a/b", "../..", "", "/w/a"};

    buf_init(ret, max);
    buf_append_str(ret, texts[hash(path) / 8 % 5]);
    return 0;
}

static const struct host_view host = {
    .kind = host_kind, .link = host_link, .list = host_list, .text = host_text};

static void check_map(const struct access_map *map)
{
    for (size_t i = 0; i < map->len; i++) {
        const struct access_entry *entry = &map->entries[i];
        AUTO(path_walk_done) struct path_walk walk = {0};
        struct err err;

        check(path_is_clean(entry->path));
        check(i == 0 || path_compare(map->entries[i - 1].path, entry->path) < 0);
        check(entry->kind != ACCESS_MISSING || entry->access != ACCESS_WRITE);
        check(!entry->is_protected || entry->access == ACCESS_READ);
        /* A protected name may be a symlink itself: it can be removed, and not be made again. */
        check(path_walk(&host, entry->path, &walk, &err) == 0 &&
              (walk.links_len == 0 || entry->is_protected));
        if (walk.links_len) {
            AUTO_FREE char *parent = path_parent(entry->path);
            AUTO(path_walk_done) struct path_walk above = {0};

            check(path_walk(&host, parent, &above, &err) == 0 && above.links_len == 0);
        }
    }
}

static void check_resolve(const struct profile *profile)
{
    char *roots[] = {(char *)"/w", (char *)"/b/a", (char *)"/w/a/.git", NULL};
    struct resolve_context context = {.view = &host, .workspace_roots = roots, .tmpdir = "/tmp/t"};
    AUTO(access_map_done) struct access_map map = {0};
    struct err err;

    if (profile_resolve(profile, &context, &map, &err) == 0)
        check_map(&map);
}

static void check_overlay(const json_t *value)
{
    AUTO(profile_overlay_done) struct profile_overlay overlay = {0};
    AUTO(profile_overlay_done) struct profile_overlay merged = {0};
    struct err err;

    if (profile_overlay_from_json(value, &overlay, &err) ||
        profile_overlay_normalise(&overlay, &err))
        return;
    profile_overlay_merge(&overlay, &overlay, &merged);
    check(merged.entries.len == overlay.entries.len);
}

static void check_profile(const json_t *value)
{
    AUTO(strv_done) struct strv ignored = {0};
    AUTO(profile_done) struct profile profile = {0};
    AUTO(profile_done) struct profile again = {0};
    AUTO_JSON json_t *json = NULL;
    AUTO_JSON json_t *json_again = NULL;
    struct err err;

    if (profile_from_json(value, &ignored, &profile, &err))
        return;
    json = profile_to_json(&profile);
    check(json && profile_from_json(json, NULL, &again, &err) == 0);
    json_again = profile_to_json(&again);
    check(json_equal(json, json_again));
    check_resolve(&profile);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err;
    AUTO_JSON json_t *value = json_parse((const char *)data, size, &err);

    if (value) {
        check_profile(value);
        check_overlay(value);
    }
    return 0;
}
