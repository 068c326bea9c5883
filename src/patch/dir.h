/* The directory below which a patch is applied. Everything in it is opened from one descriptor,
 * without following any symlink and without leaving it. */
#pragma once

#include "base/err.h"
#include "patch/changes.h"

#include <stdbool.h>
#include <sys/stat.h>

struct patch_dir {
    int fd;
    char *path; /* canonical; the root for changes_compute() */
    char *const
        *kept; /* names below it that no ledger may change; borrowed; NULL: none are known */
};

int patch_dir_open(const char *path, struct patch_dir *ret, struct err *err);
void patch_dir_done(struct patch_dir *root);

/* Reads what a patch may touch: regular files without set-id bits. Borrows the directory. */
struct source patch_dir_source(struct patch_dir *root);

/* O_PATH descriptor of the directory that holds the relative clean `path`; `*ret_name`, borrowed, is
 * its name there. */
int patch_dir_open_parent(const struct patch_dir *root, const char *path, const char **ret_name,
                          struct err *err);

/* A descriptor for reading the regular file `path`, and its status. ERR_NOT_FOUND when there is
 * none. */
int patch_dir_open_file(const struct patch_dir *root, const char *path, struct stat *ret_st,
                        struct err *err);

struct stamp stamp_of(const struct stat *st);

/* --- the names in a patch, as paths below the directory; pure --- */

/* What the files begin with that an apply makes beside the others; no patch may name such. */
#define NAMES_OWN ".cordon-patch"

/* `path` as spelled in a patch, relative to `root` (clean, absolute) and clean: "a/b". Absolute
 * paths have to lie below `root`. ERR_FORBIDDEN for ".." anywhere, for what lies elsewhere, and for
 * names of our own; ERR_INVALID for what cannot be a file. NULL on failure; caller frees. */
char *names_below(const char *root, const char *path, struct err *err);

/* Relative and clean, as names_below() makes them. */
bool names_are_clean(const char *path);

/* Both relative and clean: `path` is `directory` or lies below it. */
bool names_within(const char *path, const char *root);
