/* The folder below which a patch is applied. Everything in it is opened from one descriptor,
 * without following any symlink and without leaving it (openat2(2), RESOLVE_BENEATH and
 * NO_SYMLINKS). */
#pragma once

#include "base/err.h"
#include "patch/changes.h"

#include <sys/stat.h>

struct patch_folder {
    int fd;
    char *path; /* canonical; the root for changes_compute() */
};

int patch_folder_open(const char *path, struct patch_folder *ret, struct err *err);
void patch_folder_done(struct patch_folder *folder);

/* Reads what a patch may touch: regular files without set-id bits. Borrows the folder. */
struct source patch_folder_source(struct patch_folder *folder);

/* O_PATH descriptor of the folder that holds the relative clean `path`; `*ret_name`, borrowed, is
 * its name there. */
int patch_folder_open_parent(const struct patch_folder *folder, const char *path,
                             const char **ret_name, struct err *err);

/* A descriptor for reading the regular file `path`, and its status. ERR_NOT_FOUND when there is
 * none. */
int patch_folder_open_file(const struct patch_folder *folder, const char *path, struct stat *ret_st,
                           struct err *err);

struct stamp stamp_of(const struct stat *st);
