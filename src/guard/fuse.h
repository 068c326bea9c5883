/* The FUSE protocol (linux/fuse.h, version 7), as much of it as a place needs that nobody may look
 * into: what the kernel asks about it, and the answers that need no thought. Pure. */
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    FUSE_REQUEST_MAX = 16384, /* the kernel wants room for 8192 (FUSE_MIN_READ_BUFFER), or for what
                                 could be written at once */
    FUSE_REPLY_MAX = 128,
};

/* What is said of the place itself. */
struct fuse_root {
    mode_t mode; /* with its type, which the kernel knows already */
    uid_t uid;
    gid_t gid;
};

enum fuse_kind {
    FUSE_NOTHING,   /* wants no answer */
    FUSE_REPLY,     /* the answer is in `reply` */
    FUSE_ACCESS,    /* somebody wants to see what is there: below `name`, or the place itself */
    FUSE_INTERRUPT, /* who waits for the answer to `unique` got a signal */
    FUSE_BROKEN,    /* nothing that a kernel says */
};

struct fuse_request {
    enum fuse_kind kind;
    uint64_t unique;
    uint32_t thread; /* in the pid namespace of the mount; 0: not in there */
    char name[NAME_MAX + 1];
    size_t reply_len;
    unsigned char reply[FUSE_REPLY_MAX];
};

/* Reads one request of `len` bytes. */
void fuse_read(const void *bytes, size_t len, const struct fuse_root *root,
               struct fuse_request *ret);

/* The answer to `unique` that is an errno: its length. */
size_t fuse_refuse(uint64_t unique, int error, unsigned char ret[FUSE_REPLY_MAX]);
