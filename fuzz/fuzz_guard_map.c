/* The guard's reader of maps: whatever it accepts can be asked about any path. */
#include "fuzz.h"

#include "guard/map.h"

#include <stdlib.h>
#include <string.h>

static volatile size_t seen;

/* The entry found is the longest that the path lies in, as a look at each of them says. */
static void check_find(const struct map *map, const char *path)
{
    int found = map_find(map, path);
    int wanted = GUARD_NO_ENTRY;

    for (int i = 0; i < (int)map->header->entries; i++)
        if (map_is_within(path, map_path(map, i)) &&
            (wanted == GUARD_NO_ENTRY || strlen(map_path(map, i)) > strlen(map_path(map, wanted))))
            wanted = i;
    if (found != wanted)
        abort();
    seen += map_access(map, found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* the file is mapped, so it lies at the start of a page */
    void *bytes = size ? aligned_alloc(8, (size + 7) / 8 * 8) : NULL;
    struct map map;

    if (bytes)
        memcpy(bytes, data, size);
    if (bytes && map_init(&map, bytes, size)) {
        check_find(&map, "/");
        check_find(&map, "/work/.git/config");
        check_find(&map, "/tmp");
    }
    free(bytes);
    return 0;
}
