/* What the two directions of one path share: swap.c, swap_back.c. Nobody else reads it. */
#pragma once

#include "layer/copy.h"
#include "layer/work.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

enum { SWAP_NAME_MAX = 96 };

/* The places of an item. */
struct swap_ends {
    struct place real; /* dir -1: there is no such folder */
    struct place up;   /* the same in the step that it is of */
    struct place own;  /* accepted/N/I */
    struct place away; /* accepted/N/I.new: what an undo has ready for the layer */
    struct place temp; /* far: our name beside the real one */
    int step;
    char names[3][SWAP_NAME_MAX];
};

/* Its descriptors are good until others are asked for (trees.h). */
void swap_find_ends(struct work *work, const struct journal_item *item, struct swap_ends *ret);

/* What is above it in the layer hides nothing any more but by its name: mostly that was done for the one before. */
int swap_expose(struct work *work, const struct journal_item *item, struct err *err);

bool swap_look(const struct place *place, struct stat *ret);
bool swap_has_inode(const struct place *place, uint64_t inode);

int swap_exchange(const struct place *one, const struct place *other);
int swap_move(const struct place *from, const struct place *to); /* replaces nothing */

/* The same, and what came out (at `from`, at `to`) is held against the stamp: back again, and false with EEXIST, where it is
 * another. `ours`: the inode that is at `from` before. */
bool swap_exchange_checked(const struct place *from, const struct place *real, uint64_t ours,
                           const struct change_stamp *stamp, int64_t mtime_ns);
bool swap_remove_checked(const struct place *real, const struct place *to,
                         const struct change_stamp *stamp, int64_t mtime_ns);

void swap_leave(struct work *work, struct journal_item *item, enum left_why why,
                const char *detail);
void swap_leave_by_errno(struct work *work, struct journal_item *item);
