/* The two sides of changes, opened one after the other: the directories that they lie in stay open between. */
#pragma once

#include "base/err.h"
#include "layer/change.h"

#include <stddef.h>

struct sides {
    const struct layer *layer;
    struct side_dir {
        size_t root;
        int step; /* 0: what is real */
        int fd;
    } * items;
    size_t len;
    size_t cap;
};

/* As change_open(). */
int sides_open(struct sides *sides, const struct change *change, enum change_side side,
               struct err *err);
void sides_done(struct sides *sides);
