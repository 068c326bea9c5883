/* Which repositories a profile with git "commit" opens: those of the writable roots, and their submodules;
 * or, of a workspace root that is in none, the one that may be made there. With git "read" they are only
 * named (`repositories` of the map), for who is to be told what would help. */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "policy/access.h"
#include "policy/profile.h"

struct resolve_context;

struct git_commit {
    struct access_map *map; /* is and stays sorted */
    const struct resolve_context *context;
    enum profile_git git;
};

/* The repository `git_dir` of `worktree` ("": of none), to which that leads. A `.git` file is believed only
 * if the directory that it names leads back. What the user wrote about the directory stays. */
int git_commit_open(const struct git_commit *commit, const char *worktree, const char *git_dir,
                    struct err *err);

/* `root`, a writable directory, is in no repository: it may become one, if it is a root of the workspace. */
int git_commit_allow_new(const struct git_commit *commit, const char *root, struct err *err);

/* These `.git` files, of submodules, do not go: git enters whatever is there. */
int git_commit_keep(const struct git_commit *commit, const struct strv *files, struct err *err);
