/* The Landlock ruleset of a sandbox: the second answer to "what may be written", by inode rather
 * than by mount. Pure. */
#pragma once

#include "policy/access.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LANDLOCK_SCOPES_ABI = 6 }; /* from here on it stops signals and abstract sockets */

struct strv;

struct landlock_spec {
    int abi;                      /* of the kernel; 0 without Landlock */
    bool has_mounts;              /* the mount namespace does the rest */
    bool refuses_tcp;             /* no network namespace does it */
    bool allow_nested_namespaces; /* Landlock on files forbids every mount(2), nested ones too */
    /* Without a guard to ask: adds the names of the directories in `dir`, without symlinks. NULL:
     * there is a guard. */
    void (*list_dirs)(const char *dir, struct strv *ret);
    /* Nothing is mounted, and all the same something narrower than what is around it is to be kept so. NULL: not. */
    const struct landlock_alone *alone;
};

/* How to look at directories, without symlinks. */
struct landlock_alone {
    void (*list_dirs)(const char *dir, struct strv *ret);
    void (*list_files)(const char *dir, struct strv *ret); /* what is no directory */
    /* NULL: nothing is mounted. Else the sandbox around has mounts: they keep what is narrower below writable
     * directories, its guard names, and its /dev is its own. Whether they keep this from being read: */
    bool (*is_held)(const char *path, bool is_denied);
};

struct landlock_rule {
    char *path;
    uint64_t rights;
    bool is_child; /* found by list_dirs: it may be something else by now */
    bool is_file;  /* a child that is no directory */
};

struct landlock_rules {
    uint64_t handled; /* file rights */
    uint64_t handled_network;
    uint64_t scopes;
    struct landlock_rule *items;
    size_t len;
    size_t cap;
};

/* Landlock handles files for this map, so that it can keep names from being made. */
bool landlock_guards_names(const struct access_map *map, const struct landlock_spec *spec);

/* In the guarded roots of the map (guard_map.h) nothing may be created, moved or linked: that is the
 * guard's. Without one it may be in those of their directories that are there now, and in which, or
 * below which, no name is held.
 *
 * `spec->alone`: what is denied is read by no rule: in each directory above it, and in / (for /dev), every child that
 * is there gets a rule of its own, so what comes to be there later cannot be read (but by way of the guard).
 * To list a directory is not refused then. Guarded roots have no right to write at all.
 *
 * false when there is nothing that Landlock could do; `ret` is empty then. */
bool landlock_compile(const struct access_map *map, const struct landlock_spec *spec,
                      struct landlock_rules *ret);
void landlock_rules_done(struct landlock_rules *rules);
