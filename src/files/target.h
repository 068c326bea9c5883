/* What a file call is about: one path, and whether symbolic links on it may be followed. */
#pragma once

#include "base/err.h"
#include "base/json.h"

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* For a call that may not follow links, a link in any component is refused: ELOOP when it is the
 * last one, ENOTDIR when it stands for a directory on the way. */
struct target {
    char *path; /* absolute, clean; owned */
    bool no_follow;
};

void target_done(struct target *target);

/* The field `key` of a call's parameters, a file URI, and "followSymlinks" beside it. `ret` stays
 * untouched on failure. */
int target_read(const struct json_at *params, const char *key, struct target *ret, struct err *err);

/* The file URI of an absolute path; new reference. */
json_t *target_uri_to_json(const char *path);

/* An optional boolean. */
int target_flag(const struct json_at *params, const char *key, bool *ret, struct err *err);

/* openat(2) without following any link: `path` is relative to `dir`, or absolute. A link is ELOOP
 * as the last component and ENOTDIR before. -1 with errno. */
int target_open_strict(int dir, const char *path, int flags, mode_t mode);

/* Opens the path, close-on-exec and never waiting (O_NONBLOCK); -1 on failure. */
int target_open(const struct target *target, int flags, mode_t mode, struct err *err);

/* What the path names, links followed unless that is forbidden. */
int target_stat(const struct target *target, struct stat *ret, struct err *err);

/* A regular file, open and checked. What is no regular file (and, with O_CREAT, no missing one) is
 * ERR_INVALID and was not opened: opening some devices has effects. A directory to be written to is
 * EISDIR. */
int target_open_file(const struct target *target, int flags, struct err *err);

/* The directory that the last component is in, open for names in it (O_PATH), and that component,
 * which points into the target's path. ERR_INVALID for "/". */
int target_open_parent(const struct target *target, const char **ret_name, struct err *err);

/* --- reading the names in a directory --- */

struct dir {
    DIR *stream; /* NULL: not open */
};

int dir_open(struct dir *ret, const struct target *target, struct err *err);

/* The directory `name` in `dir`, never through a link. */
int dir_open_at(struct dir *ret, int dir, const char *name, struct err *err);

/* Takes `fd`, also on failure. */
int dir_open_fd(struct dir *ret, int fd, struct err *err);

void dir_close(struct dir *dir);

/* 1 and the next name (valid until the next call; never "." or ".."), 0 at the end, -1. */
int dir_next(struct dir *dir, const struct dirent **ret, struct err *err);
