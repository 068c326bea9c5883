/* A file of somebody else's that is to be changed: read and replaced only if nobody but this user can have a hand in
 * it. What was there stays beside it, as FILE.cordon-backup-N. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <sys/stat.h>

struct kept_file {
    char *path;      /* absolute */
    struct buf text; /* empty when it is not there */
    struct stat st;  /* only when it is */
    bool is_there;
};

void kept_file_done(struct kept_file *file);

/* Reads it, or finds that it is not there. ERR_FORBIDDEN, with what to do about it, for a symlink, a file with several
 * names, what is no regular file, belongs to another user, or lies in a folder that is another's or that others may
 * write, or that leads out of `inside` (an absolute folder, that of the user or the project). */
int kept_file_read(const char *path, const char *inside, struct kept_file *ret, struct err *err);

/* Puts the text in its place, whole or not at all, with the mode that it had, or `mode` for a new one. What was there is
 * kept first, its name is given up (NULL: nothing was there). ERR_FORBIDDEN when the file is not what was read any
 * more. */
int kept_file_replace(const struct kept_file *file, const struct buf *text, mode_t mode,
                      char **ret_backup, struct err *err);

/* The same, by removing it; nothing is kept when `ret_backup` is NULL. */
int kept_file_remove(const struct kept_file *file, char **ret_backup, struct err *err);

/* The text that was kept under the next number behind `*at`, beginning with 0: the first of all is from before any change
 * of ours. False: there is none. */
bool kept_file_next(const struct kept_file *file, unsigned *at, struct buf *ret);

/* Removes what was kept and is the same as `text`: there is nothing to go back to. True: there was such. */
bool kept_file_forget(const struct kept_file *file, const struct buf *text);
