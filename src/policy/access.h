/* What a command may do with the file system, said in literal paths: the result of resolving a
 * permission profile on one host (policy/resolve.h), and all that the plan compiler reads.
 *
 * Invariants of a resolved map:
 *  - paths are clean (path.h), canonical (no component is a symlink), unique, and ordered by
 *    path_compare(), so that a directory comes right before everything below it;
 *  - the entry with the longest path that contains a path decides about it; nothing else does;
 *  - paths without any entry are denied when `restricted`, and writable otherwise;
 *  - an entry that says the same as the entry above it decides nothing, but stays (for `explain`).
 */
#pragma once

#include "base/strv.h"
#include "policy/network_policy.h"

#include <stdbool.h>
#include <stddef.h>

/* Weakest first, so that a comparison with < means "narrower". */
enum access { ACCESS_DENY, ACCESS_READ, ACCESS_WRITE };

/* What stood at the path when the profile was resolved. */
enum access_kind {
    ACCESS_MISSING, /* nothing; its directory may be missing too */
    ACCESS_DIR,
    ACCESS_FILE, /* anything that is not a directory: regular file, socket, fifo, device */
};

enum network_access {
    NETWORK_RESTRICTED, /* loopback only */
    NETWORK_PROXIED,    /* the managed proxy is the only way out */
    NETWORK_ENABLED,    /* the host's network */
    NETWORK_HOST,       /* and its Unix sockets */
};

struct access_entry {
    char *path;
    enum access access;
    enum access_kind kind;
    bool
        is_protected; /* put there by us: a protected metadata name, not something the user wrote */
    bool is_users;    /* and yet the user wrote it, and nothing widens it */
    bool allows_sockets; /* Unix sockets here, and below up to the next entry, may be connected to
                            from a restricted network */
    bool asks;           /* DENY: who reads here may be asked about */
    bool
        allows_commits; /* READ: a git directory, in which what git writes is done by the guard; one
                            that is missing may be made */
    bool is_removable;  /* READ: with allows_commits elsewhere, the name of a linked worktree */
    bool is_by_guard;   /* WRITE: the kernel writes nothing there, but the guard does */
    bool
        is_others_tmp; /* DENY: temporary folders of other workspaces, or change layers, which no profile has
                          denied */
    char *source; /* of a private temporary folder: the folder of the host that is shown here,
                            "" for an empty one in memory; NULL: what the host has here */
    char *origin; /* who decided, for people: "config.toml:12 [permissions.x.filesystem]",
                         "built-in workspace-write", "--deny", "protected name .git" */
};

/* A symlink on the host that leads to an entry, e.g. /bin -> usr/bin: a restricted root has to
 * hold it too, or the path that the user wrote would not work inside. */
struct access_link {
    char *path;   /* clean, absolute; its parent is canonical */
    char *target; /* text of the link, as on the host */
};

struct access_map {
    struct access_entry *entries;
    size_t len;
    size_t cap;
    struct access_link *links; /* ordered by path */
    size_t links_len;
    size_t links_cap;
    struct strv own; /* what belongs to Cordon, wherever it lies: no remedy opens it */
    struct strv
        repositories; /* git directories that a profile with git "commit" would open; those that
                                 are missing could be made */
    char *home;       /* of the user, its canonical path where it is there; NULL: not known */
    bool restricted;  /* false: no file-system restriction at all (entries are empty) */
    enum network_access network;
    bool is_narrowed; /* by another profile, too, which allows no network (policy/narrow.h) */
    struct network_policy network_policy; /* NETWORK_PROXIED: what the proxy lets through */
};

void access_map_done(struct access_map *map);
void access_map_copy(struct access_map *ret, const struct access_map *map);

/* Takes nothing over; keeps no order (access_map_sort() does). Returns the new entry. */
struct access_entry *access_map_add(struct access_map *map, const char *path, enum access access,
                                    enum access_kind kind, const char *origin);

/* Denies the path, whatever other entries say about it and below: those go. Keeps the order. */
void access_map_close(struct access_map *map, const char *path, enum access_kind kind,
                      const char *origin);

/* Adds copies of all entries of `more`. */
void access_map_add_all(struct access_map *map, const struct access_map *more);

/* Adds a copy of a link, unless there is one at that path. */
void access_map_add_link(struct access_map *map, const char *path, const char *target);

/* Brings the entries and links into order. Among equal paths the user's entry beats a protected
 * one, then deny > deny that asks > write > read; the others go. */
void access_map_sort(struct access_map *map);

/* The entry of a sorted map at just this path, NULL when there is none. */
struct access_entry *access_map_exact(const struct access_map *map, const char *path);

/* The entry that decides about a clean path; NULL when none does. */
const struct access_entry *access_map_find(const struct access_map *map, const char *path);

/* The verdict for a clean path, by access_map_find() and `restricted`. */
enum access access_map_check(const struct access_map *map, const char *path);

/* The clean path lies in a private temporary folder: what the host has there is not seen. */
bool access_map_is_private(const struct access_map *map, const char *path);

/* The same, of what the host has at the path: in a private temporary folder that is out of reach. */
enum access access_map_check_host(const struct access_map *map, const char *path);

/* Drops the entries of a sorted map for which `drops` holds, which gets those before it that stay. */
void access_map_drop(struct access_map *map, bool (*drops)(const struct access_map *before,
                                                           const struct access_entry *entry));

/* `path`, or something that has an entry below it, allows more than `least`. */
bool access_map_is_open_within(const struct access_map *map, const char *path, enum access least);

/* The whole tree is readable (no deny at all) / writable (nothing narrower than write). */
bool access_map_full_read(const struct access_map *map);
bool access_map_full_write(const struct access_map *map);

const char *access_name(enum access access);           /* "deny", "read", "write" */
bool access_parse(const char *word, enum access *ret); /* those, and "none" for deny */
extern const char
    *const network_access_words[]; /* "restricted", "proxied", "enabled", "host"; NULL-terminated */

/* Commands are in the host's own network, and not in one of theirs. */
static inline bool network_is_hosts(enum network_access network)
{
    return network >= NETWORK_ENABLED;
}

const char *network_access_name(enum network_access network); /* "restricted", ... */
