/* What a profile means on one host: special paths, globs and symlinks become literal, canonical
 * paths with one access each, and the protected metadata names are added. Pure but for the
 * host_view. */
#pragma once

#include "base/err.h"
#include "policy/access.h"
#include "policy/profile.h"

struct host_view;
struct protect_choice;

struct resolve_context {
    const struct host_view *view;
    char *const *workspace_roots; /* absolute; NULL-terminated; NULL for none. Fixed by the user:
                                     the directory that a model names never becomes one by itself */
    size_t canonical_roots;  /* of them the first so many: ERR_FORBIDDEN when one leads through a
                               symlink, which somebody has put there since it was chosen */
    const char *within;      /* of profile_resolve_narrowed(): where those were chosen, and the root
                               otherwise: nothing becomes wider by them. NULL: nowhere */
    const char *tmpdir;      /* value of $TMPDIR as the command will see it; NULL or "": none */
    const char *home;        /* of the user; NULL: not known */
    const char *config_home; /* value of the user's $XDG_CONFIG_HOME; NULL: none */
    const struct protect_choice *protect; /* NULL: the default */
    const char
        *tmp_store; /* canonical: the folder with "tmp" and "var-tmp" of this workspace; NULL:
                              they are made in memory */
};

/* Fills `ret` (overwritten; access_map_done() by the caller). The rules, besides those of
 * policy/access.h:
 *  - a writable root that does not exist is left out; a missing path that is to be read-only or
 *    denied stays, with kind ACCESS_MISSING, unless its entry says to skip it;
 *  - a workspace root or other path that a symlink names is used by its canonical target, and the
 *    symlinks on the way become `links`;
 *  - ERR_FORBIDDEN, naming both paths, when the path of an entry crosses a symlink that the command
 *    itself could replace (it lies in a writable place), because the next run would then guard or
 *    open something else; or when a protected name is itself a symlink. A writable path that is
 *    writable anyway, by the directory that it really lies in, may be named by any symlink;
 *  - ERR_INVALID for a bad glob or a path that is not absolute, ERR_LIMIT for a glob with too many
 *    matches; messages name the origin of the entry. */
int profile_resolve(const struct profile *profile, const struct resolve_context *context,
                    struct access_map *ret, struct err *err);
