/* See map.h. The map comes from the host, which is trusted; it is checked all the same, so that a
 * fault there does not become one here. */
#include "guard/map.h"

#include <string.h>

/* Of a path that ends after `len` bytes, and an entry's: bytewise, a slash first, so that a
 * directory comes right before what is below it (base/path.h, path_compare()). */
static int compare(const char *path, size_t len, const char *entry)
{
    for (size_t i = 0;; i++) {
        unsigned char a = i < len ? (unsigned char)path[i] : 0;
        unsigned char b = (unsigned char)entry[i];

        if (a != b)
            return (a == '/' ? 1 : a) - (b == '/' ? 1 : b);
        if (!a)
            return 0;
    }
}

bool map_init(struct map *ret, const void *bytes, size_t size)
{
    const struct guard_map *header = bytes;
    const struct guard_entry *entries = (const void *)(header + 1);
    const uint32_t *own;
    const char *strings;

    if (size < sizeof *header || header->magic != GUARD_MAGIC || header->version != GUARD_VERSION ||
        header->bytes != size || size > GUARD_MAX_BYTES || header->entries > GUARD_MAX_ENTRIES ||
        header->own > GUARD_MAX_ENTRIES || header->host_ports_len > GUARD_HOST_PORTS_MAX ||
        size != sizeof *header + header->entries * sizeof *entries + header->own * sizeof *own +
                    header->strings ||
        !header->strings)
        return false;
    own = (const uint32_t *)(entries + header->entries);
    strings = (const char *)(own + header->own);
    if (strings[0] || strings[header->strings - 1])
        return false;
    for (uint32_t i = 0; i < header->entries; i++) {
        const struct guard_entry *entry = &entries[i];

        if (entry->path >= header->strings || strings[entry->path] != '/' ||
            entry->access > GUARD_WRITE || entry->kind > GUARD_FILE)
            return false;
        if (i && compare(strings + entries[i - 1].path, strlen(strings + entries[i - 1].path),
                         strings + entry->path) >= 0)
            return false;
    }
    for (uint32_t i = 0; i < header->own; i++)
        if (own[i] >= header->strings || !strings[own[i]])
            return false;
    *ret = (struct map){.header = header, .entries = entries, .own = own, .strings = strings};
    return true;
}

const char *map_path(const struct map *map, int entry)
{
    return map->strings + map->entries[entry].path;
}

static int find_exact(const struct map *map, const char *path, size_t len)
{
    int low = 0, high = (int)map->header->entries - 1;

    while (low <= high) {
        int middle = low + (high - low) / 2;
        int order = compare(path, len, map_path(map, middle));

        if (order == 0)
            return middle;
        if (order < 0)
            high = middle - 1;
        else
            low = middle + 1;
    }
    return GUARD_NO_ENTRY;
}

int map_find(const struct map *map, const char *path)
{
    size_t len = strlen(path);

    while (len) {
        int entry = find_exact(map, path, len);

        if (entry != GUARD_NO_ENTRY || len == 1)
            return entry;
        while (len && path[len - 1] != '/')
            len--;
        len -= len > 1; /* the root keeps its slash */
    }
    return GUARD_NO_ENTRY;
}

bool map_is_ours(const char *path)
{
    return map_is_within(path, "/proc") || map_is_within(path, "/sys") ||
           map_is_within(path, "/dev");
}

bool map_is_believed(const struct map *map, const char *name, size_t len)
{
    for (uint32_t i = 0; i < map->header->own; i++) {
        const char *believed = map->strings + map->own[i];

        if (strlen(believed) == len && memcmp(believed, name, len) == 0)
            return true;
    }
    return false;
}

bool map_is_own(const struct map *map, const char *path)
{
    for (uint32_t i = 0; i < map->header->own; i++)
        if (map_is_within(path, map->strings + map->own[i]))
            return true;
    return false;
}

static bool is_below(const char *path, const char *root)
{
    return map_is_within(path, root) && strcmp(path, root) != 0;
}

bool map_has_below(const struct map *map, const char *path)
{
    for (uint32_t i = 0; i < map->header->entries; i++)
        if (is_below(map_path(map, (int)i), path))
            return true;
    for (uint32_t i = 0; i < map->header->own; i++)
        if (is_below(map->strings + map->own[i], path))
            return true;
    return false;
}

enum guard_access map_access(const struct map *map, int entry)
{
    if (entry != GUARD_NO_ENTRY)
        return (enum guard_access)map->entries[entry].access;
    return map->header->flags & GUARD_MAP_RESTRICTED ? GUARD_DENY : GUARD_WRITE;
}

bool map_is_within(const char *path, const char *root)
{
    size_t len = strlen(root);

    if (len == 1)
        return true;
    return strncmp(path, root, len) == 0 && (path[len] == '\0' || path[len] == '/');
}
