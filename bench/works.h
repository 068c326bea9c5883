/* What people's programs do with files, for comparisons: unpacked, cloned, installed, built, looked
 * through. Everything lies in the workspace but what they read it from. */
#pragma once

#include "bench.h"

struct work {
    const char *name;
    const char *program;     /* without it there is nothing to measure */
    const char *const *argv; /* its cwd is the workspace */
    const char *leaves;      /* folder in the workspace that it makes; NULL: it makes none */
    const char *also;        /* another one */
    double against_before;   /* the most that it may take of the time of the build before */
    double against_outside;  /* and of the time outside, where there is no such build */
    unsigned share;          /* a turn for so many of the benchmark's runs */
    void (*make)(const struct bench *bench);
};

extern const struct work works[];
extern const size_t works_len;

/* What it reads and where it writes; nothing when that was made before. */
void work_make(const struct bench *bench, const struct work *work);

/* A folder of the workspace with so many small files (of a quick run, a twentieth of them). */
void works_make_tree(const struct bench *bench, const char *name, unsigned files);

/* Moves aside what the work has made, and waits until all is on the disk. Nothing is removed before the
 * end: ext4 keeps inodes that were just removed from being used again, and looks for others at
 * length. */
void work_undo(const struct bench *bench, const struct work *work);
