/* Files copied with all that belongs to them. */
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <sys/stat.h>

/* A name in a directory. */
struct place {
    int dir;
    const char *name;
};

/* Copies a file or a link to a name that is not taken: contents (shared where the file system can, holes kept), permissions without
 * set-id bits, times, extended attributes but overlayfs's, and as root the owner. What was copied is in `ret_from`, what
 * came to be in `ret_made`. On failure nothing is left at `to`. ERR_CONFLICT: it is neither file nor link, or changed while
 * it was read. */
int copy_file(const struct place *from, const struct place *to, struct stat *ret_from,
              struct stat *ret_made, struct err *err);

/* A new file with this text, else as `like`. */
int copy_text(const struct place *like, const char *text, size_t len, const struct place *to,
              struct stat *ret_made, struct err *err);

/* What a directory has besides its names: owner (as root), attributes, permissions. */
int copy_folder(const struct place *from, const struct place *to, struct err *err);

/* chmod(2) of what is there, a directory or, without set-id bits, a file; what a link leads to keeps its own (ELOOP), also when
 * it was put there just now. -1 with errno. */
int copy_mode(const struct place *to, mode_t mode);

/* Removes overlayfs's attributes of a file; a link has none. */
int copy_clean(const struct place *place, struct err *err);
