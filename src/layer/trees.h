/* Directories of the real files and of what the steps of a layer wrote, opened by their path below the root through no link and
 * kept open for the next name in them: what accepting and its likes work with. */
#pragma once

#include "base/err.h"
#include "layer/layer.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Names of ours beside real files, where the layer is on another file system, begin so. */
#define OWN_PREFIX ".cordon-layer-"

enum { TREE_REAL = 0 }; /* in place of the number of a step */

struct trees;

/* Opens every root: ERR_CONFLICT where one is another directory now. NULL on failure. */
struct trees *trees_open(const struct layer *layer, struct err *err);
void trees_close(struct trees *trees);

const struct layer *trees_layer(const struct trees *trees);
size_t trees_steps(const struct trees *trees);
int trees_step(const struct trees *trees, size_t i); /* its number; oldest first */

/* The step that has now what step `number` had, which may be part of a larger one; the newest one if it is gone. 0: there is none. */
int trees_step_now(const struct trees *trees, int number);

/* O_PATH of a directory ("" is the root itself); borrowed, until some more are asked for. -1 with errno: ENOENT, ENOTDIR,
 * ELOOP where it is none. `step`: TREE_REAL for the real one. */
int trees_folder(struct trees *trees, size_t root, int step, const char *path);

/* The same of the directory in which `path` is; `*ret_name` is the name in it, borrowed from `path`. */
int trees_parent(struct trees *trees, size_t root, int step, const char *path,
                 const char **ret_name);

/* From now on these directories, when they are opened here, can be written in though their mode says otherwise (lent.h), until
 * they are given back. */
enum trees_lending { LEND_REAL = 1, LEND_STEPS = 2 };
void trees_lend(struct trees *trees, unsigned what);
int trees_give_back(struct trees *trees, struct err *err);

/* The mode that a real directory has but for that. */
mode_t trees_real_mode(const struct trees *trees, size_t root, const char *path, mode_t mode);

/* To be told when a directory was made or taken away. */
void trees_forget(struct trees *trees);

/* The same of that directory alone, and what is below it. */
void trees_forget_below(struct trees *trees, size_t root, const char *path);

/* What is there; -1 with errno. Not followed. */
int trees_stat(struct trees *trees, size_t root, int step, const char *path, struct stat *ret);

bool is_whiteout(const struct stat *st);

/* What upper.c has found last: the newest step (its index and one; 0: none) that hides what is below a folder. */
struct trees_hiding {
    char *parent; /* NULL: nothing yet */
    size_t root;
    size_t step;
};
struct trees_hiding *trees_hiding(struct trees *trees);

/* --- what steps have, changed: nobody may have them mounted --- */

/* Makes what hides the directories above `path` from the real ones hide no more than single names, so that the path can
 * be taken away and shows what is real. What the layer shows stays as it is. */
int upper_expose(struct trees *trees, size_t root, const char *path, struct err *err);

/* Takes away what the steps from `first` to `last` have there, oldest first, directories with all below. Nothing where
 * there is nothing. */
int upper_lose(struct trees *trees, size_t root, const char *path, int first, int last,
               struct err *err);

/* Makes the directories above `path` in a step, as the real ones are. */
int upper_make_parents(struct trees *trees, size_t root, int step, const char *path,
                       struct err *err);

/* No step says anything of the path: neither has one something there, nor does one hide it. */
bool upper_is_silent(struct trees *trees, size_t root, const char *path);

int upper_whiteout(struct trees *trees, size_t root, int step, const char *path, struct err *err);
