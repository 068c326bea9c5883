/* Reading the names in a folder. */
#pragma once

#include "base/err.h"

#include <dirent.h>

struct target;

struct folder {
    DIR *stream; /* NULL: not open */
};

int folder_open(struct folder *ret, const struct target *target, struct err *err);

/* The folder `name` in `dir`, never through a link. */
int folder_open_at(struct folder *ret, int dir, const char *name, struct err *err);

/* Takes `fd`, also on failure. */
int folder_open_fd(struct folder *ret, int fd, struct err *err);

void folder_close(struct folder *folder);

/* 1 and the next name (valid until the next call; never "." or ".."), 0 at the end, -1. */
int folder_next(struct folder *folder, const struct dirent **ret, struct err *err);
