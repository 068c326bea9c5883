/* See access.h. */
#include "policy/access.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"

#include <stdlib.h>
#include <string.h>

static void access_entry_done(struct access_entry *entry)
{
    free(entry->path);
    free(entry->origin);
    free(entry->source);
}

void access_map_done(struct access_map *map)
{
    for (size_t i = 0; i < map->len; i++)
        access_entry_done(&map->entries[i]);
    for (size_t i = 0; i < map->links_len; i++) {
        free(map->links[i].path);
        free(map->links[i].target);
    }
    free(map->entries);
    free(map->links);
    strv_done(&map->own);
    strv_done(&map->repositories);
    free(map->home);
    network_policy_done(&map->network_policy);
    *map = (struct access_map){0};
}

struct access_entry *access_map_add(struct access_map *map, const char *path, enum access access,
                                    enum access_kind kind, const char *origin)
{
    struct access_entry *entry;

    map->entries = alloc_grow(map->entries, map->len, &map->cap, sizeof *map->entries);
    entry = &map->entries[map->len++];
    *entry = (struct access_entry){
        .path = alloc_str(path), .access = access, .kind = kind, .origin = alloc_str(origin)};
    return entry;
}

void access_map_add_all(struct access_map *map, const struct access_map *more)
{
    for (size_t i = 0; i < more->len; i++) {
        const struct access_entry *entry = &more->entries[i];
        struct access_entry *copy =
            access_map_add(map, entry->path, entry->access, entry->kind, entry->origin);

        copy->is_protected = entry->is_protected;
        copy->allows_sockets = entry->allows_sockets;
        copy->asks = entry->asks;
        copy->is_others_tmp = entry->is_others_tmp;
        copy->source = alloc_str(entry->source);
        copy->is_users = entry->is_users;
        copy->allows_commits = entry->allows_commits;
        copy->is_removable = entry->is_removable;
        copy->is_by_guard = entry->is_by_guard;
    }
}

void access_map_add_link(struct access_map *map, const char *path, const char *target)
{
    for (size_t i = 0; i < map->links_len; i++)
        if (strcmp(map->links[i].path, path) == 0)
            return;
    map->links = alloc_grow(map->links, map->links_len, &map->links_cap, sizeof *map->links);
    map->links[map->links_len++] =
        (struct access_link){.path = alloc_str(path), .target = alloc_str(target)};
}

void access_map_copy(struct access_map *ret, const struct access_map *map)
{
    *ret = (struct access_map){
        .restricted = map->restricted, .network = map->network, .is_narrowed = map->is_narrowed};
    access_map_add_all(ret, map);
    for (size_t i = 0; i < map->links_len; i++) {
        ret->links = alloc_grow(ret->links, ret->links_len, &ret->links_cap, sizeof *ret->links);
        ret->links[ret->links_len++] = (struct access_link){
            .path = alloc_str(map->links[i].path), .target = alloc_str(map->links[i].target)};
    }
    strv_push_all(&ret->own, strv_view(&map->own));
    strv_push_all(&ret->repositories, strv_view(&map->repositories));
    ret->home = map->home ? alloc_str(map->home) : NULL;
    network_policy_copy(&map->network_policy, &ret->network_policy);
}

/* Among equal paths: the user's entry, then deny > deny that asks > write > read. */
static int access_entry_compare(const void *left, const void *right)
{
    static const int ranks[] = {[ACCESS_DENY] = 0, [ACCESS_WRITE] = 1, [ACCESS_READ] = 2};
    const struct access_entry *a = left;
    const struct access_entry *b = right;
    int order = path_compare(a->path, b->path);

    if (order)
        return order;
    if (a->is_protected != b->is_protected)
        return a->is_protected ? 1 : -1;
    if (a->access != b->access)
        return ranks[a->access] - ranks[b->access];
    return a->asks - b->asks;
}

static int access_link_compare(const void *left, const void *right)
{
    const struct access_link *a = left;
    const struct access_link *b = right;

    return path_compare(a->path, b->path);
}

void access_map_sort(struct access_map *map)
{
    size_t kept = 0;

    if (map->links_len)
        qsort(map->links, map->links_len, sizeof *map->links, access_link_compare);
    if (!map->len)
        return;
    qsort(map->entries, map->len, sizeof *map->entries, access_entry_compare);
    for (size_t i = 1; i < map->len; i++) {
        if (strcmp(map->entries[kept].path, map->entries[i].path) == 0)
            access_entry_done(&map->entries[i]);
        else
            map->entries[++kept] = map->entries[i];
    }
    map->len = kept + 1;
}

void access_map_close(struct access_map *map, const char *path, enum access_kind kind,
                      const char *origin)
{
    size_t kept = 0;

    for (size_t i = 0; i < map->len; i++) {
        if (path_is_within(map->entries[i].path, path))
            access_entry_done(&map->entries[i]);
        else
            map->entries[kept++] = map->entries[i];
    }
    map->len = kept;
    access_map_add(map, path, ACCESS_DENY, kind, origin)->is_protected = true;
    access_map_sort(map);
}

static int access_path_compare(const void *path, const void *entry)
{
    return path_compare(path, ((const struct access_entry *)entry)->path);
}

struct access_entry *access_map_exact(const struct access_map *map, const char *path)
{
    if (!map->len)
        return NULL;
    return bsearch(path, map->entries, map->len, sizeof *map->entries, access_path_compare);
}

const struct access_entry *access_map_find(const struct access_map *map, const char *path)
{
    AUTO_FREE char *at = alloc_str(path);
    size_t len = strlen(at);

    for (;;) {
        const struct access_entry *entry = access_map_exact(map, at);

        if (entry || len <= 1)
            return entry;
        while (at[--len] != '/')
            ;
        len += len == 0; /* the root keeps its slash */
        at[len] = '\0';
    }
}

enum access access_map_check(const struct access_map *map, const char *path)
{
    const struct access_entry *entry = access_map_find(map, path);

    if (entry)
        return entry->access;
    return map->restricted ? ACCESS_DENY : ACCESS_WRITE;
}

bool access_map_is_private(const struct access_map *map, const char *path)
{
    const struct access_entry *entry = access_map_find(map, path);

    return entry && entry->source;
}

enum access access_map_check_host(const struct access_map *map, const char *path)
{
    return access_map_is_private(map, path) ? ACCESS_DENY : access_map_check(map, path);
}

void access_map_drop(struct access_map *map, bool (*drops)(const struct access_map *before,
                                                           const struct access_entry *entry))
{
    size_t len = map->len;

    map->len = 0;
    for (size_t i = 0; i < len; i++) {
        struct access_entry entry = map->entries[i];

        if (drops(map, &entry))
            access_entry_done(&entry);
        else
            map->entries[map->len++] = entry;
    }
}

bool access_map_is_open_within(const struct access_map *map, const char *path, enum access least)
{
    if (access_map_check(map, path) > least)
        return true;
    for (size_t i = 0; i < map->len; i++)
        if (map->entries[i].access > least && path_is_within(map->entries[i].path, path))
            return true;
    return false;
}

static bool access_map_all(const struct access_map *map, enum access least)
{
    if (!map->restricted)
        return true;
    if (access_map_check(map, "/") < least)
        return false;
    for (size_t i = 0; i < map->len; i++)
        if (map->entries[i].access < least)
            return false;
    return true;
}

bool access_map_full_read(const struct access_map *map)
{
    return access_map_all(map, ACCESS_READ);
}

bool access_map_full_write(const struct access_map *map)
{
    return access_map_all(map, ACCESS_WRITE);
}

const char *access_name(enum access access)
{
    static const char *const names[] = {"deny", "read", "write"};

    return names[access];
}

bool access_parse(const char *word, enum access *ret)
{
    if (strcmp(word, "read") == 0)
        *ret = ACCESS_READ;
    else if (strcmp(word, "write") == 0)
        *ret = ACCESS_WRITE;
    else if (strcmp(word, "deny") == 0 || strcmp(word, "none") == 0)
        *ret = ACCESS_DENY;
    else
        return false;
    return true;
}

const char *const network_access_words[] = {"restricted", "proxied", "enabled", "host", NULL};

const char *network_access_name(enum network_access network)
{
    return network_access_words[network];
}
