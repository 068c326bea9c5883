/* See id_map.h. Open addressing with linear probing; removing moves later ones of the same row
 * back, so there are no marks of removed ones and a row ends at the first free slot (Knuth, The Art
 * of Computer Programming 3, 6.4, algorithm R). */
#include "job/id_map.h"

#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>

enum { CAP_MIN = 16 };

void id_map_done(struct id_map *map)
{
    free(map->slots);
    *map = (struct id_map){0};
}

/* Where the row of an id begins: the high bits of a product with 2^32 over the golden ratio. */
static size_t id_map_home(const struct id_map *map, int id)
{
    return ((uint32_t)id * UINT32_C(2654435769) >> 7) & (map->cap - 1);
}

/* The slot of the id, or the free one where it belongs. */
static size_t id_map_probe(const struct id_map *map, int id)
{
    size_t at = id_map_home(map, id);

    while (map->slots[at].id && map->slots[at].id != id)
        at = (at + 1) & (map->cap - 1);
    return at;
}

void *id_map_find(const struct id_map *map, int id)
{
    return map->cap ? map->slots[id_map_probe(map, id)].value : NULL;
}

static void id_map_grow(struct id_map *map)
{
    struct id_map larger = {.cap = map->cap ? map->cap * 2 : CAP_MIN, .len = map->len};

    larger.slots = alloc_zero(larger.cap, sizeof *larger.slots);
    for (size_t i = 0; i < map->cap; i++)
        if (map->slots[i].id)
            larger.slots[id_map_probe(&larger, map->slots[i].id)] = map->slots[i];
    free(map->slots);
    *map = larger;
}

void id_map_add(struct id_map *map, int id, void *value)
{
    if ((map->len + 1) * 2 > map->cap)
        id_map_grow(map);
    map->slots[id_map_probe(map, id)] = (struct id_slot){.id = id, .value = value};
    map->len++;
}

void id_map_remove(struct id_map *map, int id)
{
    size_t mask = map->cap - 1;
    size_t hole;

    if (!id_map_find(map, id))
        return;
    hole = id_map_probe(map, id);
    for (size_t at = (hole + 1) & mask; map->slots[at].id; at = (at + 1) & mask) {
        /* it may move to the hole unless its row begins behind the hole */
        size_t home = id_map_home(map, map->slots[at].id);

        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        map->slots[hole] = map->slots[at];
        hole = at;
    }
    map->slots[hole] = (struct id_slot){0};
    map->len--;
}

void *id_map_next(const struct id_map *map, size_t *at)
{
    while (*at < map->cap)
        if (map->slots[(*at)++].id)
            return map->slots[*at - 1].value;
    return NULL;
}
