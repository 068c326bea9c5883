/* Directories in which nobody may write (as Go leaves those of its modules), made writable while something is done in them. Each
 * is noted on the disk before, so that it gets its mode back also after a kill. */
#pragma once

#include "base/err.h"
#include "layer/layer.h"

#include <sys/types.h>

struct lent {
    const struct layer *layer;
    int notes; /* -1: none yet */
};

/* `path`: absolute, or in the layer's folder. `fd` is of the directory, or one of O_PATH. Nothing where `mode`, its own,
 * has all that it takes. */
int lent_take(struct lent *lent, int fd, const char *path, mode_t mode, struct err *err);

/* Only the note, for a directory that is about to be moved. */
int lent_note(struct lent *lent, mode_t mode, const char *path, struct err *err);

/* Gives every directory that is noted its mode back; what is not there any more was moved, and is noted where it is now. */
int lent_return(struct lent *lent, struct err *err);
