/* What a name comes to, seen through the steps of a layer: pure, over what was found on the disk.
 *
 * Steps have indices here, 0 is the oldest. Those from `from` on are the new side; those before, over the real
 * files, are the old one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* What is known of a directory (or of what a directory would be) in a step. */
enum view_flag {
    VIEW_HAS_DIR = 1, /* the step has a directory there */
    VIEW_COVERS = 2,  /* and hides by it, or by a directory above, all that is below it */
};

/* A name that a step has in the directory. */
struct view_entry {
    size_t step;
    mode_t mode;
    bool is_whiteout;
};

struct view_name {
    const uint8_t *dir; /* flags of the directory by step */
    size_t steps;
    size_t from;                      /* < steps */
    const struct view_entry *entries; /* newest step first */
    size_t len;
    bool has_real;
};

struct view {
    bool is_untouched;               /* no step of the new side has to do with it */
    const struct view_entry *now;    /* NULL: there is none */
    const struct view_entry *before; /* NULL: the real one, or none */
    bool is_before_real;
    size_t step;  /* whose it is; that removed it */
    size_t first; /* the first that had to do with it, of all */
};

void view_of(const struct view_name *name, struct view *ret);

/* The flags of what is below the name, but for what its directories say of themselves (opaque). */
void view_below(const struct view_name *name, uint8_t *ret);

/* Whether one of the steps from `from` up to `to`, without that, hides what older ones have in the directory. */
bool view_covers(const uint8_t *dir, size_t from, size_t to);

/* What became of it, as in enum change_kind; 0: nothing. Modes are 0 of what is not there. Of what has a
 * directory on one side 'T' means that it is a 'D' and an 'A'. `is_same`: the contents are. */
int view_kind(mode_t now, mode_t before, bool is_same);
