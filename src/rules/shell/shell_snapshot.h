/* What a login shell's start-up files set up, taken once and given to every later command, so that
 * their time is paid once. Text only; the caller runs and stores it:
 *
 *     run shell_snapshot_take() once        login start-up, then the state as a script, on stdout
 *     shell_snapshot_cut() its output       kept in memory
 *     shell_snapshot_carry()                as variables of the environment: see shell_snapshot.c
 *     run shell_snapshot_check()            exit code 0, or it is of no use
 *     shell_snapshot_use() for each command `SHELL -lc SCRIPT` becomes one without start-up
 *
 * Made for bash, zsh and sh. The state is functions, aliases, options and exported variables (not
 * PWD, OLDPWD and SHLVL; sh cannot list its functions). It holds in the directory and for the
 * environment in which it was taken; rules and approvals look at the argv as it was. */
#pragma once

#include "base/strv.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    SHELL_SNAPSHOT_TIMEOUT_S = 10,   /* for taking it */
    SHELL_SNAPSHOT_MAX = 512 * 1024, /* bytes of output: execve(2) takes 2 MiB of everything */
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

/* Appends "NAME=PART" for the environment of the commands below; how many. The state has no NUL. */
size_t shell_snapshot_carry(const char *state, size_t len, struct strv *ret_env);

/* Appends the words that try the state, carried in so many parts: every command of it has to
 * succeed. */
void shell_snapshot_check(const char *shell, size_t parts, struct strv *ret);

/* When `argv` is `SHELL -lc SCRIPT`, of the very shell of the snapshot: appends the words that run
 * the script in the state that the environment carries, as if after a login, and returns true. The
 * variables `keep` (names; NULL-terminated) have the values of the environment and not those of the
 * snapshot. Otherwise, also when the words would become too long for execve(2), false, and `ret` is
 * as it was. */
bool shell_snapshot_use(char *const *argv, const char *shell, size_t parts, char *const *keep,
                        struct strv *ret);
