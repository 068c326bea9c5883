/* What the steps of a layer have below one root, held against what is really there. */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "layer/change.h"

#include <stdbool.h>
#include <stddef.h>

struct walk_input {
    size_t root;      /* its number in the layer */
    const char *path; /* of the root, for people */
    int real;         /* O_PATH descriptors: of what is real, */
    const int *ups;   /* and of what each step has there, oldest first; -1: nothing */
    const int *numbers;
    size_t steps;
    const bool *is_open; /* by step: commands may have files of it open for writing */
    size_t from;         /* these steps and newer ones, against what is below them; < steps */
    const struct strv
        *paths; /* relative, sorted by path_compare(): these, and what is below; NULL: all */
    const struct strv *protected_names; /* sorted */
    bool leaves_git;                    /* real git directories are not looked into */
};

/* Appends to `ret`, in no order: kinds and marks, but no renames and no conflicts. What could not be looked at gets a line in
 * `ret_problems`. */
int walk_root(const struct walk_input *in, struct changes *ret, struct strv *ret_problems,
              struct err *err);

/* A descriptor of what `path` (relative, clean; "" for itself) is below `dir`, with these flags of open(2), through no
 * link, and on no other file system. -1 with errno. */
int walk_open(int dir, const char *path, int flags);
