/* Overlays over directories, mounted in a user and a mount namespace of their own, which launches join. Nobody lives
 * in them: they last as long as the descriptors here, or a process that has joined.
 *
 * What is mounted is opened inside, by the caller's own rights and through no link; the directory that is lain over
 * has to be the one that the caller has looked at. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* One directory to lie over. All paths are absolute and canonical. */
struct overlay {
    const char *
        name; /* how /proc/PID/mountinfo shows it: its source, of at most 255 bytes; NULL: "cordon-layer" */
    const char *root;
    dev_t dev; /* these two of `root`; the mount fails when it is another */
    ino_t ino;
    const char *const *lowers; /* the steps before, newest first; NULL-terminated; may be NULL */
    const char *upper;         /* empty, and never mounted before */
    const char *work;          /* empty, beside `upper` */
    const char *const
        *real; /* below `root`: shown as they really are; missing ones are none; NULL-terminated */
};

struct overlay_namespace {
    int users;  /* of the user namespace */
    int mounts; /* of the mount namespace */
};

/* Mounts in a new mount namespace: of `users`, which stays the caller's, or with -1 of a new user namespace, in which
 * the caller's ids are mapped (root's: all). ERR_UNSUPPORTED with the reason and the remedy when this host or file
 * system cannot; ERR_CONFLICT when a root is another than it was. Takes some 0.3 ms. Both descriptors of `ret` are new;
 * on failure it is {-1, -1}. */
int overlay_mount(const struct overlay *overlays, size_t len, int users,
                  struct overlay_namespace *ret, struct err *err);

/* The kernel forgets what it has cached of what lies below and is not in use. With `freezes` nothing can be written there any
 * more: that fails while somebody has a file open in which he could, though the commands are gone, if one of them gave it away. */
int overlay_refresh(const struct overlay_namespace *space, const char *const *roots, bool freezes,
                    struct err *err);

/* The same in a process of its own, for what may take long: the kernel throws away all that it has cached, and with the mounts, when
 * nobody else has them. `ret` is to be given to overlay_apart_end(). */
struct overlay_apart {
    pid_t pid; /* 0: there is none */
    int pidfd; /* readable when it has ended */
};
int overlay_refresh_apart(const struct overlay_namespace *space, const char *const *roots,
                          bool freezes, struct overlay_apart *ret, struct err *err);
bool overlay_apart_end(struct overlay_apart *apart); /* waits for it; whether it could do it */

/* Whether one whose `upper` is made in `place`, a directory in which we may make some, could lie over `root`: by doing
 * it. Nothing of it stays. Without a root: over an empty directory. Errors as of overlay_mount(). */
int overlay_probe(const char *root, const char *place, struct err *err);

void overlay_close(struct overlay_namespace *space); /* safe on {-1, -1} */
