/* Everything that resolving a profile needs to know about the host, behind four functions, so that
 * the rest of src/policy is pure: tests pass a host made of JSON (tests/unit/policy/fake_host.h).
 *
 * Paths are absolute and clean. No function of a view follows a symlink in the last component;
 * path_walk() goes component by component, so none occurs in the others either. */
#pragma once

#include "base/err.h"
#include "policy/access.h"

#include <stddef.h>

struct buf;

enum host_kind {
    HOST_MISSING,
    HOST_DIR,
    HOST_FILE, /* regular file */
    HOST_SYMLINK,
    HOST_OTHER,  /* socket, fifo, device */
    HOST_HIDDEN, /* the directory above does not let us look (EACCES) */
};

/* What a look that failed means for what is to be protected. Nobody else compares an errno, so that
 * nobody takes "cannot be seen" for "is not there". */
enum host_failure {
    HOST_FAILURE_ABSENT,  /* nothing is there */
    HOST_FAILURE_HIDDEN,  /* the directory does not let us look: all of it has to be covered */
    HOST_FAILURE_UNKNOWN, /* anything could be there: the run has to be refused */
};
enum host_failure host_failure_of(int error);

struct host_item {
    char *name;
    enum host_kind kind; /* neither HOST_MISSING nor HOST_HIDDEN */
};

struct host_listing {
    struct host_item *items; /* ordered by name, bytewise; without "." and ".." */
    size_t len;
    size_t cap;
};

struct host_view {
    int (*kind)(const struct host_view *view, const char *path, enum host_kind *ret,
                struct err *err);
    /* Text of a symlink, not empty; caller frees. NULL on failure. */
    char *(*link)(const struct host_view *view, const char *path, struct err *err);
    /* Entries of a directory. One that is not there (any more) is ERR_NOT_FOUND, one that cannot be
     * read ERR_FORBIDDEN; more than HOST_LISTING_MAX entries are ERR_LIMIT. */
    int (*list)(const struct host_view *view, const char *path, struct host_listing *ret,
                struct err *err);
    /* Whole text of a regular file; ERR_LIMIT when longer than `max` bytes. `ret` is initialised
     * by the call. */
    int (*text)(const struct host_view *view, const char *path, size_t max, struct buf *ret,
                struct err *err);
};

enum { HOST_LISTING_MAX = 1000000 };

void host_listing_done(struct host_listing *listing);

/* This machine. Never blocks on fifos or devices, changes nothing. */
extern const struct host_view host_view_real;

/* Another view, which is asked once about the kind of each name: for one resolution, which meets most
 * directories many times. A look that fails is made again. */
struct host_memory {
    struct host_view view; /* first: give its address to who wants one */
    const struct host_view *below;
    struct host_known *known[256]; /* by hash of the path */
};
void host_memory_begin(struct host_memory *memory, const struct host_view *below);
void host_memory_done(struct host_memory *memory);

/* The home directory of an account, by the file of accounts alone; NULL in `*ret`: it has none there.
 * Caller frees. */
int host_account_home(const struct host_view *view, const char *name, char **ret, struct err *err);

/* --- a path as the kernel would follow it: symlinks resolved one component at a time --- */

enum path_end {
    PATH_FOUND,   /* `path` is there */
    PATH_MISSING, /* `path` is where it would be; one or more of its last components do not exist */
    PATH_HIDDEN,  /* `path` is the last directory on the way that can be seen; it lets us look no
                     further (nor any process with the same rights) */
    PATH_BLOCKED, /* `path` is something on the way that is no directory */
};

struct path_walk {
    char *path; /* clean and canonical */
    enum path_end end;
    enum access_kind kind;     /* of what is at `path` */
    struct access_link *links; /* symlinks that were followed, in order */
    size_t links_len;
    size_t links_cap;
    size_t name_link; /* 1 + index of the symlink that the whole path itself named, 0 for none */
};

void path_walk_done(struct path_walk *walk);

enum { PATH_WALK_LINKS_MAX = 40 /* as Linux has it */ };

/* Follows the clean path `path`. ERR_INVALID when there are too many symlinks, or one goes through
 * something that is missing and back again. */
int path_walk(const struct host_view *view, const char *path, struct path_walk *ret,
              struct err *err);

/* Whether `holds` for every name that the kernel goes by to reach the clean path: directories, symlinks, what
 * those lead to, and the last one itself. Behind something that is missing the rest is taken as it stands;
 * false when something cannot be seen. What is true of places that nobody changes stays true. */
bool path_way(const struct host_view *view, const char *path,
              bool (*holds)(void *data, const char *name), void *data);

/* A command with this access can decide what is found at the clean path: it may write there, or anywhere on the
 * way, so that it can rename a directory or turn a symlink between a look and a use. */
bool path_may_change(const struct host_view *view, const struct access_map *map, const char *path);
