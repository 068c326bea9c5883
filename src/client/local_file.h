/* A file of this machine that is written as a whole: nobody sees half of it. */
#pragma once

#include "base/err.h"

#include <stddef.h>

struct local_file {
    int fd;
    char *path;   /* NULL: what cannot be replaced, a terminal, a pipe, "-" */
    char *making; /* beside it; NULL: written in place */
};

/* What is to be in it is written to `fd`. `path` is "-" for stdout, a folder, in which the file
 * gets `name`, or the file. */
int local_file_open(struct local_file *file, const char *path, const char *name, struct err *err);

/* Puts it in its place. */
int local_file_commit(struct local_file *file, struct err *err);

/* Without a commit nothing is left. */
void local_file_done(struct local_file *file);
