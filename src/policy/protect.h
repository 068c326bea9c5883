/* Protected metadata: names in a writable directory whose content is run or trusted outside of the
 * sandbox: git's hooks and settings, and the configuration of agents. They become read-only,
 * whether they exist or not. */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "policy/access.h"

struct host_view;

/* The one list of the names: help texts and tests take it from here. */
#define PROTECT_NAMES(FIRST, NEXT)                                                                 \
    FIRST(".git") NEXT(".agents") NEXT(".codex") NEXT(".aws") NEXT(".cordon")

/* ".git, .agents, ..." */
#define PROTECT_TEXT_FIRST(name) name
#define PROTECT_TEXT_NEXT(name) ", " name
#define PROTECT_NAMES_TEXT PROTECT_NAMES(PROTECT_TEXT_FIRST, PROTECT_TEXT_NEXT)

extern const char *const protect_names[]; /* NULL-terminated */

bool protect_is_name(const char *name);

/* Adds the protected entries for every writable root of the sorted `map`, and leaves it sorted.
 * `reopened`: symlinks that a write entry of the user names.
 *
 * A root is every directory with an entry that allows writing; but not a protected name of another
 * root, which the user opened again, nor a part of a `.git` that was. (A checkout in such a place,
 * which has a `.git` of its own, is one.) For each root, the direct children of the names above, and
 * in one that is a git directory itself those that say what git runs (`config`, `hooks`, ...);
 * for a `.git` file what it points to, and what a `commondir` file of the git directory points to,
 * as far as they lie in a writable place. An entry of the user at exactly such a path stays: with
 * write it opens the name again (and what it points to is left alone), with read it becomes the
 * protected entry.
 *
 * ERR_FORBIDDEN, with both paths, when a name is a symlink, or a pointer leads through a symlink in
 * a writable place. */
int protect_add(struct access_map *map, const struct host_view *view, const struct strv *reopened,
                struct err *err);

/* ERR_FORBIDDEN when one of the `len` symlinks lies where `map` allows writing, so that the command
 * could point it elsewhere. `path` (what is to be guarded) and the symlink are both named. */
int protect_check_links(const struct access_map *map, const char *path,
                        const struct access_link *links, size_t len, struct err *err);
