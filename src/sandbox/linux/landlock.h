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
};

struct landlock_rule {
    char *path;
    uint64_t rights;
    bool is_child; /* found by list_dirs: it may be something else by now */
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
 * false when there is nothing that Landlock could do; `ret` is empty then. */
bool landlock_compile(const struct access_map *map, const struct landlock_spec *spec,
                      struct landlock_rules *ret);
void landlock_rules_done(struct landlock_rules *rules);
