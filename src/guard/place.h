/* Where a path of the caller leads: the directory, as an open descriptor in the caller's own view of
 * the file system, and the last name in it. */
#pragma once

#include "guard/guard.h"

#include <sys/stat.h>

struct place {
    int dir;               /* O_PATH; -1 when there is none */
    int lock;              /* a descriptor of it that is locked (flock) against other guards; -1 */
    struct kept_dir *kept; /* which `dir` is of; NULL: it is closed with the place */
    struct identity identity; /* of the directory */
    bool is_guarded;          /* it lies in a root, where the kernel creates nothing */
    bool is_granted;          /* somebody said yes to this name */
    char name[NAME_MAX + 2];  /* with the slash that ended the path, if one did */
};

/* Room for the text of a path, and of what the symlinks at its end say. */
typedef char place_text[PATH_MAX];

/* false with errno when there is no such place, or (EACCES) one that is not for us: a path that ends in
 * "." or "..", is the root, or leads through a descriptor in a way that we do not follow. */
bool place_find(const struct request *request, int dir, const char *text, struct place *ret);

/* Nobody may follow another user's link in a directory like /tmp, on a host that says so
 * (fs.protected_symlinks); here it would be us who does. `st`: of the link at `place`. */
bool place_may_follow(const struct place *place, const struct stat *st);

/* The same for a symlink at `place`, which becomes what the link says. */
bool place_follow(const struct request *request, struct place *place);

void place_done(struct place *place);

/* The directory, as a descriptor of the caller's; -1. The place has none any more. */
int place_take_dir(struct place *place);

/* A file that is there, and of which the sandbox refuses nothing: it lies on the mount of a root, but is
 * not one. `flags`: AT_SYMLINK_NOFOLLOW. false: it is not known. */
bool place_is_free(const struct request *request, int dir, const char *text, int flags);

/* Canonical path of the whole, as the command sees it: directory and name, without a slash at the end;
 * "" when the directory has none any more. */
void place_path(const struct place *place, char ret[PATH_MAX]);

/* Something of the sandbox is mounted on the name: what is read-only, hidden or a root. The kernel keeps
 * such a name where it is only for those who see the mount; for us, outside, it would be moved away
 * with the mount, and the name be free. What is mounted does not change while the command runs.
 * *ret_closed: it lies where nobody may look, nor rename. */
bool place_is_mount_point(const struct place *place, bool *ret_closed);

/* The directory of a place that the command may write to, by a mount of the host's: between the mounts of two
 * roots the kernel neither renames nor links. -1 when it is another one there, or none. Whoever uses it
 * sees to it that nothing of the sandbox is mounted on the name. */
int place_open_on_host(const struct command *command, const struct place *place);

/* The same directory as the host has it, where the sandbox's mounts are not: found by its canonical
 * path, and only if it is just that directory (a private one of the sandbox has no twin). */
bool place_outside(const struct command *command, const struct place *place, struct place *ret);

/* A descriptor (O_PATH) of what lies at this canonical path below `dir` (command->outside: on the host), reached through no
 * link; -1. */
int place_open_host(int dir, const char *path, int flags);

/* May the user `mode` (W_OK, ...) what lies at this canonical path outside of the sandbox? */
bool place_permits(const struct command *command, const char *path, int mode);

enum { PLACE_LINK = 32 };

/* The path by which what is open as `fd` is reached, whatever it is called by now. */
const char *place_link(int fd, char ret[PLACE_LINK]);

/* The canonical path of what is open; false for what has none any more. */
bool place_path_of(int fd, char ret[PATH_MAX]);

/* What is open as `fd`; false when it cannot be said. */
bool identify(int fd, struct identity *ret);

/* A descriptor (O_PATH) of what the path names altogether, for paths such as /proc/self/fd/3 that
 * are the name of a descriptor; -1. */
int place_descriptor(const struct request *request, const char *text);
