/* One stand-in on the disk: how it is made, known, and taken away. See standin.c. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

/* The folder of the clean `path`, which may hold no symlink, and in `ret_name` the name in it. */
int standin_file_open_parent(const char *path, const char **ret_name, struct err *err);

/* A new stand-in, opened; -1 with errno, EEXIST when something is there by now. */
int standin_file_make(int parent, const char *name, bool is_file);

/* Opens what stands at `name` if it is a stand-in; -1 with errno 0 when it is something else. */
int standin_file_open(int parent, const char *name);

/* Removes the stand-in behind `fd` if nobody else holds it and `name` still names it. false when it
 * is left behind and nobody but a later process of this user will be able to remove it. */
bool standin_file_remove(int parent, const char *name, int fd);

/* Is what stands at `path` a stand-in? To everybody but its holders nothing is there. */
bool standin_file_is(const char *path);
