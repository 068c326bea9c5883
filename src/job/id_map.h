/* Positive numbers to pointers. Adding, finding and removing cost O(1). */
#pragma once

#include <stddef.h>

struct id_slot {
    int id; /* 0: free */
    void *value;
};

/* A zeroed one is empty. */
struct id_map {
    struct id_slot *slots;
    size_t cap; /* a power of two, more than half of it free */
    size_t len;
};

void id_map_done(struct id_map *map); /* the values are the caller's */

void *id_map_find(const struct id_map *map, int id);      /* NULL: not there */
void id_map_add(struct id_map *map, int id, void *value); /* has not to be there */
void id_map_remove(struct id_map *map, int id);

/* The values of all, in no order: begin with `*at` = 0; NULL behind the last. Removing one makes
 * the walk miss others. */
void *id_map_next(const struct id_map *map, size_t *at);
