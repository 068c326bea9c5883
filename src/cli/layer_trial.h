/* Whether change layers can be had here, found out by making one over the directory, with nothing in it. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

struct layer_trial {
    const char *finding; /* word of docs/troubleshooting.md; NULL: nothing is amiss; static */
    struct err refusal;  /* they cannot be had here: why, with the remedy; code 0: they can */
    char *folder;        /* where they would be kept; NULL: not known */
    bool is_near;        /* on the file system of the directory: accepting moves */
    bool is_in_memory;
    bool clones; /* files of it are not copied at the first write, but cloned */
};

/* `dir` is absolute and canonical. */
void layer_trial_make(const char *dir, struct layer_trial *ret);
void layer_trial_done(struct layer_trial *trial);
