/* The shell of the user whom this process runs for. */
#pragma once

/* The shell for a command with this environment (NULL: none): its $SHELL if that is of a kind that
 * rules/shell/shell_choice.h knows (fish is not, and does not read what models write), else that of
 * the password database if it is, else one found by its $PATH or in the usual places, /bin/sh at
 * last. Absolute; asks the name service of the host. Caller frees. */
char *host_shell(char *const *env);
