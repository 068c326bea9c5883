/* See shell_choice.h. Pure but for the finder, which knows the disk. */
#include "rules/shell/shell_choice.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"

#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    enum shell_kind kind;
} kinds[] = {
    {"bash", SHELL_BASH},       {"sh", SHELL_SH},   {"zsh", SHELL_ZSH},
    {"pwsh", SHELL_POWERSHELL}, {"cmd", SHELL_CMD}, {"powershell", SHELL_POWERSHELL},
};

enum shell_kind shell_kind_of(const char *path)
{
    const char *name = path + strlen(path);
    size_t len;

    while (name > path && name[-1] != '/' && name[-1] != '\\')
        name--;
    len = strcspn(name, ".");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i].name) == len && strncasecmp(kinds[i].name, name, len) == 0)
            return kinds[i].kind;
    return SHELL_UNKNOWN;
}

/* --- finding --- */

/* The path of a program; NULL when it is not there or of another kind. */
static char *find_of_kind(enum shell_kind kind, const char *name,
                          const struct program_finder *finder)
{
    AUTO_FREE char *real = NULL;
    char *found = NULL;

    if (!name || shell_kind_of(name) != kind || !finder->find(finder, name, &found, &real))
        return NULL;
    return found;
}

char *shell_find(enum shell_kind kind, const char *given, const char *login_shell,
                 const struct program_finder *finder)
{
    static const char *const usual[] = {"/bin/bash",          "/usr/bin/bash", "/bin/zsh",
                                        "/usr/bin/zsh",       "/bin/sh",       "/usr/bin/sh",
                                        "/usr/local/bin/pwsh"};
    char *found = NULL;

    if (given && strchr(given, '/'))
        found = find_of_kind(kind, given, finder);
    if (!found && login_shell && strchr(login_shell, '/'))
        found = find_of_kind(kind, login_shell, finder);
    for (size_t i = 0; !found && i < sizeof kinds / sizeof *kinds; i++)
        found = find_of_kind(kind, kinds[i].name, finder);
    for (size_t i = 0; !found && i < sizeof usual / sizeof *usual; i++)
        found = find_of_kind(kind, usual[i], finder);
    return found;
}

char *shell_choose(const char *login_shell, const struct program_finder *finder)
{
    enum shell_kind kind = login_shell ? shell_kind_of(login_shell) : SHELL_UNKNOWN;
    char *found = NULL;

    if (kind != SHELL_UNKNOWN)
        found = shell_find(kind, login_shell, NULL, finder);
    if (!found)
        found = shell_find(SHELL_BASH, NULL, NULL, finder);
    if (!found)
        found = shell_find(SHELL_ZSH, NULL, NULL, finder);
    return found ? found : alloc_str("/bin/sh");
}

/* --- words --- */

/* PowerShell writes its output in a code page unless it is told otherwise: the property
 * System.Console.OutputEncoding of .NET. */
static const char utf8_line[] = "[Console]::OutputEncoding=[System.Text.Encoding]::UTF8;\n";

void shell_argv_make(const char *shell, enum shell_start start, const char *script,
                     struct strv *ret)
{
    enum shell_kind kind = shell_kind_of(shell);

    strv_push(ret, shell);
    if (kind == SHELL_POWERSHELL) {
        if (start == SHELL_PLAIN)
            strv_push(ret, "-NoProfile");
        strv_push(ret, "-Command");
        strv_pushf(ret, "%s%s", str_starts(script, utf8_line) ? "" : utf8_line, script);
        return;
    }
    if (kind == SHELL_CMD)
        strv_push(ret, "/c");
    else
        strv_push(ret, start == SHELL_LOGIN ? "-lc" : "-c");
    strv_push(ret, script);
}
