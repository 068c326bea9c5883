/* Judgements about commands that no rule decides: dangerous, known to be safe, and too wide to be
 * proposed as a rule. The first two look at a command_view, so through shells, sudo, env, ... */
#pragma once

#include "rules/shell/command_view.h"

#include <stdbool.h>

enum command_danger {
    DANGER_NONE,
    DANGER_FORCED_RM, /* rm with a force option, anywhere inside; has its own refusal text */
    DANGER_OTHER,     /* nested too deep to be looked through */
};

enum command_danger command_view_danger(const struct command_view *view);

/* Where the name of a program leads. `find` gives for a name as in argv[0] (bare or with slashes)
 * the absolute clean path that would be executed, with the PATH and directory of the command
 * (`*ret_found`), and that path without any symlink (`*ret_real`); both are freed by the caller.
 * false when there is no such program. */
struct program_finder {
    bool (*find)(const struct program_finder *finder, const char *name, char **ret_found,
                 char **ret_real);
    /* Behind a `cd` the name could lead elsewhere: it is a relative path, or PATH has a relative entry in
     * front of where it is found. NULL: it never does. */
    bool (*may_move)(const struct program_finder *finder, const char *name);
    /* No command in any sandbox of this user can have put it there, as far as the host tells. NULL: not
     * known, and believed. */
    bool (*is_settled)(const struct program_finder *finder, const char *path);
};

/* Everything that the view runs only reads and prints: each command is one of the known-safe list
 * with harmless options, and it, like the shell around it, is found in a system directory and really
 * lies there. A name alone proves nothing (a repository may bring its own `./ls`). */
bool command_view_is_safe(const struct command_view *view, const struct program_finder *finder);

/* A program of that list, by its base name: whatever its words are, it runs none of them (but find). */
bool program_only_reads(const char *program);

/* `path` (absolute, clean) lies directly in /bin, /sbin, /usr/bin or /usr/sbin. */
bool path_is_system_program(const char *path);

/* The whole prefix (NULL-terminated) would allow nearly anything, so it is never proposed as a rule
 * ("bash -c", "sudo"); a longer one, like an interpreter with its script, is not. A rule of a person that
 * allows it without a sandbox allows nothing. */
bool prefix_is_banned(char *const *prefix);
