/* Where the names of programs lead on this host: what the kernel would execute for them. */
#pragma once

#include "rules/shell/command_class.h"

struct host_finder {
    struct program_finder finder; /* first: give its address to who wants one */
    const char *search_path;      /* $PATH of the command; NULL: bare names lead nowhere */
    const char *cwd;              /* of the command; absolute */
};

/* Nobody but the administrator can change the program or a directory on its path: for an ordinary user
 * those that he cannot write and does not own; for root what lies where the system's programs do. */
bool host_path_is_settled(const char *path);

/* It is, and so is what it leads to by symlinks. */
bool host_leads_to_settled(const char *path);

/* The interpreter that the first line of a script names; NULL: it is none; "": that cannot be told. Caller
 * frees. */
char *host_interpreter(const char *path);

/* The directories of $PATH that are so, and `also` (NULL: none); caller frees. */
char *host_settled_path(char *const *env, const char *also);

/* By the $PATH of `env`, the command's environment (NULL: none); both are borrowed. */
void host_finder_init(struct host_finder *finder, char *const *env, const char *cwd);

/* The value of the variable; borrowed, NULL: it is not there. `env` may be NULL. */
const char *env_value(char *const *env, const char *name);

/* The shell for a command with this environment (NULL: none): its $SHELL if that is of a kind that
 * rules/shell/shell_choice.h knows (fish is not, and does not read what models write), else that of
 * the password database if it is, else one found by its $PATH or in the usual places, /bin/sh at
 * last. Absolute. Caller frees. */
char *host_shell(char *const *env);
