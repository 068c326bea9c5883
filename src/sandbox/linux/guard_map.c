/* See guard_map.h.
 *
 * A name that is missing cannot be covered by a mount, and may not come to be: it is held. So the
 * kernel must allow nothing to be created in its directory, and, because what Landlock allows in a
 * directory it allows in all that lies below, in no writable directory above it either: all of
 * these are guarded roots (landlock.c), in which the guard creates, after a look at the name.
 *
 * Names that exist make their root a guarded one, too: somebody outside may remove them while the
 * command runs, and a directory must not become a git repository in another way.
 *
 * Where nothing is mounted (`is_alone`), every narrower entry is such a name: nothing covers what is there, so Landlock
 * gives no right to write in any directory above it, and the guard does all that is done there (guard/alone.c). */
#include "sandbox/linux/guard_map.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "policy/protect.h"

#include <stdlib.h>
#include <string.h>

/* /dev and /proc are ours, whatever is said about them (plan.c). */
static bool is_ours(const char *path)
{
    return path_is_within(path, "/dev") || path_is_within(path, "/proc");
}

/* Every writable directory that `path` lies in. */
static void mark_roots(const struct access_map *map, const char *path, uint16_t *flags)
{
    AUTO_FREE char *at = path_parent(path);

    for (;;) {
        const struct access_entry *entry = access_map_exact(map, at);
        char *above;

        if (entry && entry->access == ACCESS_WRITE && entry->kind == ACCESS_DIR)
            flags[entry - map->entries] |= GUARD_ENTRY_ROOT;
        if (!at[1])
            return;
        above = path_parent(at);
        free(at);
        at = above;
    }
}

static bool is_narrower(const struct access_map *map, const struct access_entry *entry)
{
    AUTO_FREE char *parent = path_parent(entry->path);

    return entry->access != ACCESS_WRITE && entry->path[1] &&
           access_map_check(map, parent) == ACCESS_WRITE;
}

uint16_t *guard_map_entry_flags(const struct access_map *map, bool is_alone)
{
    uint16_t *flags = alloc_zero(map->len + 1, sizeof *flags);

    for (size_t i = 0; i < map->len; i++) {
        const struct access_entry *entry = &map->entries[i];

        if (is_ours(entry->path) || !is_narrower(map, entry))
            continue;
        if (entry->kind == ACCESS_MISSING || is_alone)
            flags[i] |= GUARD_ENTRY_HELD_NAME;
        if (entry->kind == ACCESS_MISSING || entry->is_protected || is_alone)
            mark_roots(map, entry->path, flags);
    }
    return flags;
}

bool guard_map_has_names(const struct access_map *map, bool is_alone)
{
    AUTO_FREE uint16_t *flags = guard_map_entry_flags(map, is_alone);

    for (size_t i = 0; i < map->len; i++)
        if (flags[i])
            return true;
    return false;
}

static void append_entries(const struct access_map *map, const uint16_t *flags, struct buf *ret)
{
    uint32_t offset = 1;

    for (size_t i = 0; i < map->len; i++) {
        const struct access_entry *entry = &map->entries[i];
        const struct guard_entry item = {
            .path = offset,
            .access = (uint8_t)entry->access,
            .kind = (uint8_t)entry->kind,
            .flags = (uint16_t)(flags[i] | (entry->allows_sockets ? GUARD_ENTRY_SOCKETS : 0) |
                                (entry->allows_commits ? GUARD_ENTRY_GIT : 0) |
                                (entry->is_removable ? GUARD_ENTRY_REMOVABLE : 0) |
                                (entry->is_by_guard ? GUARD_ENTRY_ASKED : 0)),
        };

        buf_append(ret, &item, sizeof item);
        offset += (uint32_t)strlen(entry->path) + 1;
    }
}

_Static_assert((int)GUARD_DENY == (int)ACCESS_DENY && (int)GUARD_READ == (int)ACCESS_READ &&
                   (int)GUARD_WRITE == (int)ACCESS_WRITE,
               "written as they are");
_Static_assert((int)GUARD_MISSING == (int)ACCESS_MISSING && (int)GUARD_DIR == (int)ACCESS_DIR &&
                   (int)GUARD_FILE == (int)ACCESS_FILE,
               "written as they are");

_Static_assert((int)GUARD_HOST_PORTS_MAX == (int)NETWORK_HOST_PORTS_MAX, "copied as they are");

int guard_map_encode(const struct access_map *map, const struct strv *own_paths, uint32_t flags,
                     struct buf *ret, struct err *err)
{
    AUTO(strv_done) struct strv owned = {0};
    const struct strv *own = &owned;
    AUTO_FREE uint16_t *entry_flags = guard_map_entry_flags(map, flags & GUARD_MAP_ALONE);
    struct guard_map header = {
        .magic = GUARD_MAGIC,
        .version = GUARD_VERSION,
        .flags = flags | (map->restricted ? GUARD_MAP_RESTRICTED : 0u),
        .entries = (uint32_t)map->len,
    };
    size_t size = sizeof header + map->len * sizeof(struct guard_entry);
    size_t strings = 1;
    uint32_t offset;

    strv_push_all(&owned, strv_view(own_paths));
    protect_all_names(&owned);
    header.own = (uint32_t)own->len;
    header.host_ports_len = (uint32_t)map->network_policy.host_ports_len;
    memcpy(header.host_ports, map->network_policy.host_ports, sizeof header.host_ports);
    for (size_t i = 0; i < map->len; i++)
        strings += strlen(map->entries[i].path) + 1;
    offset = (uint32_t)strings;
    for (size_t i = 0; i < own->len; i++)
        strings += strlen(own->items[i]) + 1;
    size += own->len * sizeof offset + strings;
    if (map->len > GUARD_MAX_ENTRIES || own->len > GUARD_MAX_ENTRIES || size > GUARD_MAX_BYTES)
        return err_set(err, ERR_LIMIT,
                       "%zu entries (%zu bytes of paths) are too many for the guard", map->len,
                       strings);
    header.strings = (uint32_t)strings;
    header.bytes = (uint32_t)size;
    buf_init(ret, GUARD_MAX_BYTES);
    buf_append(ret, &header, sizeof header);
    append_entries(map, entry_flags, ret);
    for (size_t i = 0; i < own->len; i++) {
        buf_append(ret, &offset, sizeof offset);
        offset += (uint32_t)strlen(own->items[i]) + 1;
    }
    buf_append(ret, "", 1);
    for (size_t i = 0; i < map->len; i++)
        buf_append(ret, map->entries[i].path, strlen(map->entries[i].path) + 1);
    for (size_t i = 0; i < own->len; i++)
        buf_append(ret, own->items[i], strlen(own->items[i]) + 1);
    return 0;
}
