/* What git is led to, from every writable root: its own repository, found as git finds it, its
 * submodules, and what its configuration names. */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "policy/access.h"
#include "policy/host_view.h"

struct profile;
struct resolve_context;

/* Adds entries for all of it that is writable, and leaves the sorted map sorted. An entry of the user at
 * such a path stays. The repositories that the profile opens (git_commit.h) are.
 * ERR_FORBIDDEN when something cannot be seen that decides, or when a pointer leads
 * through a symlink in a writable place. */
int protect_git(struct access_map *map, const struct resolve_context *context,
                const struct profile *profile, const struct strv *roots, struct err *err);

/* protect.c's: of an entry for what is there. */
enum access_kind protect_kind(enum host_kind kind);
