/* What somebody has said yes to, for as long as the command runs: known by what it is (device and
 * inode, kept by an open descriptor), and good only while it is where it was when it was shown. */
#pragma once

#include "guard/object.h"

#include <time.h>

enum grant_kind {
    GRANT_FILE,     /* what is there: to be written and changed, by whatever name */
    GRANT_NAME,     /* one name in a directory: to come, go and move, with all that is below it */
    GRANT_CONTENTS, /* all in a directory, whose own name belongs to the one above */
};

struct grant {
    enum grant_kind kind;
    int fd; /* O_PATH, as the host has it: the file; the directory (of the name) */
    struct identity identity;
    char *path;            /* of `fd` */
    char *name;            /* NAME */
    struct timespec since; /* by the clock of the files */
};

enum {
    GRANTS_MAX = 1024,  /* of a command */
    GRANTS_OF_CALL = 3, /* that a call may need */
};

/* What a yes about the refused object would have to be. false: nobody is asked about that: it belongs to
 * Cordon, an entry denies it, or the host does not have it. */
bool grant_wanted(const struct request *request, const struct object *object, struct grant *ret);

/* The same for moving a file that has other names: it may be written by the new one. */
bool grant_wanted_file(const struct request *request, const struct object *object,
                       struct grant *ret);

/* Some grant covers what the call does with the object. Narrower entries of the profile are not, nor what git
 * runs or obeys in a `.git` that was there before, nor other names that programs believe: those that were there, and
 * new ones in a directory that was. */
bool grants_cover(const struct request *request, const struct grants *grants,
                  const struct object *object);

/* Takes over what `from` has, which is empty then. false: too many, or no memory. */
bool grants_add(struct grants *grants, struct grants *from);
void grants_done(struct grants *grants);
