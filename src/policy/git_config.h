/* git's configuration, as far as it names files of the workspace. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* What a value names, for the keys that matter. */
enum git_config_kind {
    GIT_CONFIG_NOTHING,
    GIT_CONFIG_INCLUDE,  /* another file, relative to this one */
    GIT_CONFIG_WORKTREE, /* the work tree, relative to the git directory */
    GIT_CONFIG_HOOKS,    /* a directory of hooks, relative to the work tree */
    GIT_CONFIG_PATH,     /* a file or directory, likewise */
    GIT_CONFIG_COMMAND,  /* a command for the shell, which starts in the work tree */
};

struct git_config_reader {
    const char *at; /* the rest */
    const char *end;
    char *section; /* in small letters, without subsection; NULL before the first */
    char *value;   /* of the last key */
};

void git_config_begin(struct git_config_reader *reader, const char *text, size_t len);
void git_config_done(struct git_config_reader *reader);

/* The next key that matters; its value is reader->value. GIT_CONFIG_NOTHING at the end. */
enum git_config_kind git_config_next(struct git_config_reader *reader);
