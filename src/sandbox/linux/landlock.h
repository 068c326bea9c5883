/* The Landlock ruleset of a sandbox: the second answer to "what may be written", by inode rather
 * than by mount. Pure. */
#pragma once

#include "policy/access.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct landlock_spec {
    int abi;                      /* of the kernel; 0 without Landlock */
    bool has_mounts;              /* the mount namespace does the rest */
    bool refuses_tcp;             /* no network namespace does it */
    bool allow_nested_namespaces; /* Landlock on files forbids every mount(2), nested ones too */
};

struct landlock_rule {
    char *path;
    uint64_t rights;
};

struct landlock_rules {
    uint64_t handled; /* file rights */
    uint64_t handled_network;
    uint64_t scopes;
    struct landlock_rule *items;
    size_t len;
    size_t cap;
};

/* false when there is nothing that Landlock could do; `ret` is empty then. */
bool landlock_compile(const struct access_map *map, const struct landlock_spec *spec,
                      struct landlock_rules *ret);
void landlock_rules_done(struct landlock_rules *rules);
