/* What a login shell's start-up files set up, taken once and given to every later command, so that
 * their time is paid once (spec/exec-core.md 9.4). Text only; who runs and stores it:
 *
 *     run shell_snapshot_take() once        login start-up, then the state as a script, on stdout
 *     shell_snapshot_cut() its output       into a file that nobody else can read
 *     run shell_snapshot_check()            exit code 0, or the file is of no use
 *     shell_snapshot_use() for each command `SHELL -lc SCRIPT` becomes one without start-up
 *
 * Made for bash, zsh and sh. The state is functions, aliases, options and exported variables (not
 * PWD, OLDPWD and SHLVL; sh cannot list its functions). It holds in the folder and for the
 * environment in which it was taken; rules and approvals look at the argv as it was. */
#pragma once

#include "base/strv.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    SHELL_SNAPSHOT_TIMEOUT_S = 10,               /* for taking it */
    SHELL_SNAPSHOT_MAX = 4 * 1024 * 1024,        /* bytes of output */
    SHELL_SNAPSHOT_AGE_MAX_S = 3 * 24 * 60 * 60, /* an older file is left over and may be removed */
};

/* Appends the words that print the state after a login. false: no snapshot of a shell of this
 * kind. */
bool shell_snapshot_take(const char *shell, struct strv *ret);

/* For when start-up files do not come to an end: the same without any of them. Only zsh can do
 * without those that it otherwise always reads; false for others. */
bool shell_snapshot_take_bare(const char *shell, struct strv *ret);

/* The snapshot in what was printed: behind the marker line, so without what start-up files said.
 * Points into `output`; NULL when there is no marker. */
const char *shell_snapshot_cut(const char *output, size_t len, size_t *ret_len);

/* Appends the words that try the file: every command of it has to succeed. */
void shell_snapshot_check(const char *shell, const char *path, struct strv *ret);

/* When `argv` is `SHELL -lc SCRIPT`, of the very shell of the snapshot: appends the words that run
 * the script in the state of the file `path` (absolute), as if after a login, and returns true. The
 * variables `keep` (names; NULL-terminated) have the values of the environment and not those of the
 * snapshot. When the file cannot be read by then, the login start-up is run. Otherwise, also when
 * the words would become too long for execve(2), false, and `ret` is as it was. */
bool shell_snapshot_use(char *const *argv, const char *shell, const char *path, char *const *keep,
                        struct strv *ret);
