/* One thing that an apply does to a directory, in two halves: everything that can be prepared beside
 * the file, under a name of ours, and then one rename(2), which can also be taken back.
 *
 *     kind      prepared        done by                              after it, our name holds
 *     ADD       the new file    rename, unless there is one          nothing
 *     REPLACE   the new file    exchange of the two names            the old file
 *     REMOVE    an empty file   rename of the old file over it       the old file
 *
 * An ADD may also be a whole new directory with files in it. Whether a step is done can be seen from
 * the two names alone, so the process that comes after a kill can go on, or back. And because what
 * was prepared lies in the same directory, only a process that may write there can have made a step
 * for it.
 */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "patch/changes.h"
#include "patch/dir.h"

#include <stdbool.h>
#include <stddef.h>

enum step_kind { STEP_ADD = 'A', STEP_REPLACE = 'R', STEP_REMOVE = 'D' };

struct step {
    enum step_kind kind;
    char *path;          /* relative, clean */
    char *own;           /* name of ours, in the same directory */
    bool is_dir;         /* ADD */
    struct strv dirs;    /* ADD of a directory: those inside, parents first; from where `path` is */
    struct strv files;   /* ... and its files */
    struct stamp before; /* REPLACE, REMOVE: of the old file */
    struct stamp after;  /* of what was prepared */
};

struct steps {
    struct step *items;
    size_t len;
    size_t cap;
    char id[17]; /* of this apply: 16 hexadecimal digits */
};

/* Appends a step; `path` is taken. Its name of ours follows from the id and its number. */
struct step *steps_add(struct steps *steps, enum step_kind kind, char *path);
void steps_done(struct steps *steps);

/* Where the file `path` inside a step's new directory is while it is prepared; of other steps the name
 * of ours itself. Relative to the directory of the patch; caller frees. */
char *step_own_path(const struct step *step, const char *path);

enum step_state {
    STEP_TODO,
    STEP_DONE,
    STEP_WRONG, /* done, but to something else than the file that was read: to be taken back */
    STEP_LOST,  /* another process has been at it: to be left alone */
};

/* Which state the two names are in. */
int step_check(const struct patch_dir *root, const struct step *step, enum step_state *ret,
               struct err *err);

/* Does a step that is to be done still. When the file is not the one that was read any more, it is
 * taken back and the step fails. */
int step_do(const struct patch_dir *root, const struct step *step, struct err *err);

/* Takes a step back that is DONE or WRONG. */
int step_undo(const struct patch_dir *root, const struct step *step, struct err *err);

/* Removes what is under the name of ours. What is not there is no error. */
int step_discard(const struct patch_dir *root, const struct step *step, struct err *err);

/* The steps for the changes, in the order of their paths; steps.id is set by the caller. Looks
 * which directories are missing, and makes nothing. */
int steps_plan(const struct patch_dir *root, const struct changes *changes, struct steps *steps,
               struct err *err);

/* Makes what the step needs under its name of ours, with the content and permissions that it is to
 * have, and sets the stamps. Fails when a file is not as it was read. */
int step_prepare(const struct patch_dir *root, const struct changes *changes, struct step *step,
                 struct err *err);
