/* Which shell runs a script when the caller named none, and with which words. */
#pragma once

#include "base/strv.h"
#include "rules/shell/command_class.h"

enum shell_kind {
    SHELL_UNKNOWN, /* fish and others */
    SHELL_SH,
    SHELL_BASH,
    SHELL_ZSH,
    SHELL_POWERSHELL,
    SHELL_CMD,
};

/* How a script is started: as after a login (the start-up files of the user are read), or not. */
enum shell_start { SHELL_PLAIN, SHELL_LOGIN };

/* By the name without directories and extension: "/usr/bin/bash", "C:\\...\\pwsh.exe". */
enum shell_kind shell_kind_of(const char *path);

/* The absolute path of a shell of that kind: `given` if that is one, else the login shell if it is
 * one, else by the finder's search path, else where such shells usually are. `given` and
 * `login_shell` may be NULL. NULL when there is none. Caller frees. */
char *shell_find(enum shell_kind kind, const char *given, const char *login_shell,
                 const struct program_finder *finder);

/* The user's shell: `login_shell` (of the password database; may be NULL) when its kind is known,
 * else bash, zsh, and /bin/sh at last. Caller frees. */
char *shell_choose(const char *login_shell, const struct program_finder *finder);

/* Appends the words that make the shell run the script. A shell of unknown kind gets those of sh.
 * PowerShell gets one line in front of the script that sets the encoding of its output to UTF-8,
 * unless the script begins with that line. */
void shell_argv_make(const char *shell, enum shell_start start, const char *script,
                     struct strv *ret);
