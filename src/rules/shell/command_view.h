/* An argv as rules and classes see it: what it runs, looked at through shells and wrappers.
 *
 *     bash -lc "cd x && sudo rm -rf y"    commands: cd x | sudo rm -rf y     inside: rm -rf y
 *     bash -lc "make > log"               commands: the argv itself, opaque  inside: make
 *     env A=1 make test                   commands: the argv itself          inside: make test
 *
 * How to use it: a verdict is the strictest over all `commands`, each judged alone; what is
 * `inside` may make it stricter (a forbidding or prompting rule, danger) and never milder. So an
 * allow rule counts only for `commands`, and only when every one of them has one. */
#pragma once

#include "rules/shell/shell_words.h"

#include <stdbool.h>

struct command_view {
    /* The plain commands of a shell wrapper, else the argv as the only one. Never empty but for an
     * empty argv. */
    struct shell_commands commands;
    /* The literal commands that those run in turn, at any depth, duplicates possible; for an opaque
     * script every literal command anywhere in its text. Words that are not literal are left out.
     */
    struct shell_commands inside;
    const char *opaque; /* why not all that runs is known ("a redirection"); NULL when it is */
    size_t offset;      /* of what is opaque, in the script of a wrapper; else 0 */
    /* Nested beyond SHELL_DEPTH_MAX or too large to be looked through: counts as dangerous. */
    bool too_deep;
    const char *shell; /* argv[0] of a shell wrapper (borrowed), or NULL */
};

/* Pure. `*ret` is initialised by the call; `argv` is NULL-terminated and outlives it. */
void command_view_make(char *const *argv, struct command_view *ret);
void command_view_done(struct command_view *view);

/* The script of `bash|zsh|sh -c|-lc SCRIPT`, exactly three words, the shell given by bare name or
 * by an absolute path in a system directory (else it may be anything); NULL for any other argv. */
const char *shell_wrapper_script(char *const *argv);
