/* Working with mounts by descriptor; shared by the parts of the launcher that change mounts. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* open_tree(2) and move_mount(2), which the C libraries do not wrap. An empty `name` means `to`
 * itself. */
int tree_copy(int dir, const char *path, unsigned flags);
int tree_move(int from, int to, const char *name);

/* O_PATH descriptor of an absolute path below the root `tree`; no link may be on the way. */
int tree_open(int tree, const char *path, struct err *err);

/* A copy of all mounts at the open `at`, which is `path` to people. */
int tree_copy_all(int at, const char *path, struct err *err);

/* Sets mount attributes (K_MOUNT_ATTR_*); `flags` may hold K_AT_RECURSIVE. */
int tree_set(int fd, uint64_t attributes, unsigned flags, const char *path, struct err *err);

/* No mount event goes in or out, for everything at and below `fd`. */
int tree_set_private(int fd, struct err *err);

/* Mounts what `fd` holds at `path` below the root `tree`. */
int tree_attach(int tree, int fd, const char *path, struct err *err);

/* The same, closes `fd`, and fails when that is -1 already. */
int tree_put(int tree, int fd, bool read_only, const char *path, struct err *err);

/* A new file system of `type`, not mounted anywhere yet; `key` may be NULL. */
int tree_new(const char *type, const char *key, const char *value, uint64_t attributes,
             struct err *err);

/* Makes an empty file; -1 with errno. */
int tree_make_file(int dir, const char *name, mode_t mode);
