/* One thing that an apply does to a folder, in two halves: everything that can be prepared beside
 * the file, under a name of ours, and then one rename(2), which can also be taken back.
 *
 *     kind      prepared        done by                              after it, our name holds
 *     ADD       the new file    rename, unless there is one          nothing
 *     REPLACE   the new file    exchange of the two names            the old file
 *     REMOVE    an empty file   rename of the old file over it       the old file
 *
 * An ADD may also be a whole new folder with files in it. Whether a step is done can be seen from
 * the two names alone, so whoever comes after a kill can go on, or back. And because what was
 * prepared lies in the same folder, nobody who could not write there can have made a step for it.
 */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "patch/changes.h"
#include "patch/folder.h"

#include <stdbool.h>
#include <stddef.h>

enum step_kind { STEP_ADD = 'A', STEP_REPLACE = 'R', STEP_REMOVE = 'D' };

struct step {
    enum step_kind kind;
    char *path;          /* relative, clean */
    char *own;           /* name of ours, in the same folder */
    bool is_folder;      /* ADD */
    struct strv folders; /* ADD of a folder: those inside, parents first; from where `path` is */
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

/* Where the file `path` inside a step's new folder is while it is prepared; of other steps the name
 * of ours itself. Relative to the folder of the patch; caller frees. */
char *step_own_path(const struct step *step, const char *path);

enum step_state {
    STEP_TODO,
    STEP_DONE,
    STEP_WRONG, /* done, but to something else than the file that was read: to be taken back */
    STEP_LOST,  /* somebody else has been at it: to be left alone */
};

int step_look(const struct patch_folder *folder, const struct step *step, enum step_state *ret,
              struct err *err);

/* Does a step that is to be done still. When the file is not the one that was read any more, it is
 * taken back and the step fails. */
int step_do(const struct patch_folder *folder, const struct step *step, struct err *err);

/* Takes a step back that is DONE or WRONG. */
int step_undo(const struct patch_folder *folder, const struct step *step, struct err *err);

/* Removes what is under the name of ours. What is not there is no error. */
int step_discard(const struct patch_folder *folder, const struct step *step, struct err *err);
