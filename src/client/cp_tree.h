/* Copies of whole folders, file by file in blocks: of a folder that is being copied no more is held
 * than its list of names. What cannot be copied is said, and the rest is copied. Internal to cp. */
#pragma once

#include "base/err.h"
#include "client/progress.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct connection;
struct face;
struct local_file;
struct remote_file;

enum { CP_DEPTH_MAX = 128 }; /* folders in folders */

struct cp {
    struct connection *connection;
    const struct face *face;
    struct progress progress;
    char *block;     /* REMOTE_BLOCK bytes */
    size_t failed;   /* entries that are not copied */
    bool has_warned; /* that the server knows no modes */
};

/* Says what is wrong with one entry and counts it. */
void cp_complain(struct cp *cp, const struct err *err);

/* The bytes of an open file `fd` (`name` in messages), to the server; the other way to `fd`. */
int cp_send(struct cp *cp, int fd, const char *name, const struct remote_file *file,
            struct err *err);
int cp_receive(struct cp *cp, const struct remote_file *file, int fd, const char *name,
               struct err *err);

/* The local folder `from` becomes the folder at the server, and the other way round: into one that
 * is there already what is copied is merged, and its own mode stays. -1: nothing more can be done.
 */
int cp_tree_there(struct cp *cp, const char *from, const struct remote_file *to, struct err *err);

/* `mode` of the folder; -1: not known. */
int cp_tree_here(struct cp *cp, const struct remote_file *from, int mode, const char *to,
                 struct err *err);
