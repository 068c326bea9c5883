/* What the names in a git directory mean: which of them git writes when somebody works with it, and which
 * say what it runs, or lead it elsewhere. Pure. */
#pragma once

#include <stdbool.h>

enum git_kind {
    GIT_CLOSED, /* git runs it, or is led by it; or it is none of git's */
    GIT_DATA,   /* a file, whatever is in it */
    GIT_FOLDER, /* of data, at any depth: files, too */
    GIT_HOLDER, /* a directory that others are in: it stays, but may be made */
    GIT_HEAD, /* these decide what git takes the directory for, and what it enters and runs; git replaces */
    GIT_INDEX, /* them by what it has written beside them */
    GIT_CONFIG,
    GIT_COMMONDIR, /* of a linked worktree: leads to the repository */
    GIT_GITDIR,    /* of a linked worktree: leads to its .git file */
};

/* A path in a repository. */
struct git_name {
    enum git_kind kind;
    bool is_of_worktree; /* a linked one's */
    const char *rest;    /* behind the directory of the worktree */
};

/* Of a path relative to the git directory, not empty. `is_new`: what `git init` takes from its templates is
 * data, too. */
struct git_name git_name_of(const char *path, bool is_new);
