/* See secret_files.h. An entry for a file that is not there would have a placeholder made for it on
 * the host, so only what is there is hidden; a place is made anew when that changes (place.c). It
 * is no defence where files are not restricted at all. */
#include "server/secret_files.h"

#include <unistd.h>

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

size_t secret_files_count(const struct strv *files)
{
    size_t count = 0;

    for (size_t i = 0; i < files->len; i++)
        count += is_there(files->items[i]);
    return count;
}

void secret_files_hide(const struct strv *files, struct access_map *map)
{
    for (size_t i = 0; map->restricted && i < files->len; i++)
        if (is_there(files->items[i]))
            access_map_add(map, files->items[i], ACCESS_DENY, ACCESS_FILE,
                           "a secret of the server");
    access_map_sort(map);
}
