/* Changes of a layer as a person reads them: lines, in which a folder that was moved, or is new or gone as a whole, is one. */
#pragma once

#include "layer/accept.h"
#include "layer/change.h"
#include "layer/layer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* Colours, as what a terminal is sent; all "" where there are none. */
struct ink {
    const char *added, *gone, *changed, *moved, *mark, *head, *hunk, *faint, *off;
};
const struct ink *ink_of(int fd); /* coloured: a terminal, and neither NO_COLOR nor a dumb one */
const struct ink *ink_plain(void);

enum change_fold { FOLD_NONE, FOLD_MOVED, FOLD_NEW, FOLD_GONE };

struct change_line {
    enum change_fold fold;
    size_t *items; /* of the changes; of FOLD_NONE one */
    size_t len, cap;
    char *path, *from; /* of a fold: the folders, relative to the root; NULL */
    size_t files;      /* of a fold */
    uint64_t bytes;
    unsigned marks; /* of all of them */
};

struct change_lines {
    struct change_line *items;
    size_t len, cap;
};

/* `is_full`: every change has its own. A directory of which something below has a line has none itself, else. */
void change_lines_make(const struct changes *changes, bool is_full, struct change_lines *ret);
void change_lines_done(struct change_lines *lines);

struct change_view {
    const struct layer *layer;
    const struct changes *changes;
    const char *cwd; /* from which paths are shown */
    const struct ink *ink;
};

/* One line, "  changed  src/main.c   ! run later by make"; plain, whatever the names are. */
void change_line_print(const struct change_view *view, const struct change_line *line,
                       struct buf *ret);

/* "2 new, 1 changed; 1 run later", "nothing": what there is of each. */
void change_counts_print(const struct change_counts *counts, const struct ink *ink,
                         struct buf *ret);

/* Why it is marked, by commas: "run later by make, executable now"; nothing when it is not. */
void change_marks_print(const struct change *change, struct buf *ret);

/* "1.2M"; "512 bytes" */
void size_print(uint64_t bytes, struct buf *ret);

/* "just now", "5 minutes ago"; `when` in the past */
void age_print(const struct timespec *when, struct buf *ret);

/* --- what was not done --- */

/* A line for each path that was left, with what to do; `command` is the one that was given ("accept"). */
void left_print(const struct layer *layer, const char *cwd, const char *command,
                const struct left *left, size_t len, struct buf *ret);
