/* Which programs a shell script runs, and with which words, when that can be said by reading it.
 *
 * A script is *plain* when it is nothing but commands of literal words, joined by `&&`, `||`, `;`,
 * `|` and newlines, such that bash, dash and zsh all run exactly these
 * commands. Everything else is *opaque*: nothing may be concluded from its text but that it is
 * dangerous (rules/shell/shell_literal.h). When in doubt, opaque.
 *
 *     cd src && grep -rn "two words" *.c | head -5      plain: cd, grep, head
 *     echo $HOME;  make > log;  A=1 make;  (ls);  ls &   opaque
 *
 * Plain excludes what changes the meaning of later words (export, alias, source, set but for a few
 * options, ...), what runs words as a script (eval, trap), and programs that run something which
 * cannot be read there (rules/shell/command_inside.h): `sh -c` with an opaque script, a shell reading its
 * input, `env -S`.
 *
 * Not covered: start-up files and the environment may redefine any name (functions, PATH), and
 * files may not be what they are called. */
#pragma once

#include "base/strv.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    SHELL_SCRIPT_MAX = 256 * 1024, /* bytes; a longer script is opaque */
    SHELL_COMMANDS_MAX = 1024,     /* commands of one script; more make it opaque */
    SHELL_DEPTH_MAX = 8,           /* programs that run programs */
};

struct shell_command {
    struct strv words; /* without their quotes; never empty */
    /* The first so many words reach the program as they are here. The one behind has a glob or a
     * tilde (kept as text), which may become any number of any words: behind it no position is
     * known. words.len when every word is literal; never 0. */
    size_t exact;
};

struct shell_commands {
    struct shell_command *items;
    size_t len;
    size_t cap;
};

void shell_commands_done(struct shell_commands *commands);

/* A new last command without words; valid until the next call. */
struct shell_command *shell_commands_add(struct shell_commands *commands);

/* A new last command that is a copy of `words[0..len)`, all exact. */
struct shell_command *shell_commands_copy(struct shell_commands *commands, char *const *words,
                                          size_t len);

struct shell_script {
    struct shell_commands commands; /* in the order of the text; empty when opaque */
    const char *opaque;             /* why ("a redirection"; never freed), or NULL: plain */
    size_t offset;                  /* byte of the text that made it opaque */
};

/* Reads `len` bytes of script (NUL bytes make it opaque). Pure; time is linear in `len`. `*ret` is
 * initialised by the call. An empty script is opaque. */
void shell_script_parse(const char *text, size_t len, struct shell_script *ret);

void shell_script_done(struct shell_script *script);

/* Why an argv that is run without a shell (so builtins have no meaning) is not plain, or NULL. The
 * text is static. */
const char *shell_argv_objection(char *const *argv, size_t len);

/* A builtin of every shell that only prints or changes the directory: cd, echo, false, pwd, true, :.
 */
bool shell_builtin_is_harmless(const char *name);

/* Lists of names in one text, as they are read best: "cd echo false". `name` is one of the words of
 * `list`, which are separated by blanks. */
bool name_list_has(const char *list, const char *name);
