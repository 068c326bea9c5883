/* The shell of the user whom this process runs for. */
#pragma once

/* Absolute path: that of the password database if it is a kind that rules/shell/shell_choice.h knows,
 * else one found by `search_path` ($PATH; may be NULL) or in the usual places, /bin/sh at last.
 * Asks the name service of the host. Caller frees. */
char *host_shell(const char *search_path);

/* The shell for a command with this environment: its $SHELL if that is such a kind (fish is none,
 * and does not read what models write), else host_shell() by its $PATH. Caller frees. */
char *host_shell_for(char *const *env);
