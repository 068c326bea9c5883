/* See powershell.h. */
#include "rules/shell/powershell.h"

#include "base/str.h"
#include "rules/shell/shell_choice.h"

#include <strings.h>

/* System.Console.OutputEncoding of .NET. */
static const char utf8_line[] = "[Console]::OutputEncoding=[System.Text.Encoding]::UTF8;\n";

static bool is_option(const char *word, const char *option)
{
    return strcasecmp(word, option) == 0; /* PowerShell ignores case */
}

/* The index of the script; 0 when the argv is anything else. */
static size_t script_at(char *const *argv)
{
    size_t at = 1;

    if (!argv[0] || shell_kind_of(argv[0]) != SHELL_POWERSHELL)
        return 0;
    while (argv[at] && (is_option(argv[at], "-NoLogo") || is_option(argv[at], "-NoProfile")))
        at++;
    if (!argv[at] || !(is_option(argv[at], "-Command") || is_option(argv[at], "-c")))
        return 0;
    return argv[at + 1] && !argv[at + 2] ? at + 1 : 0;
}

bool powershell_use_utf8(char *const *argv, struct strv *ret)
{
    size_t script = script_at(argv);

    if (script == 0 || str_starts(argv[script], utf8_line))
        return false;
    for (size_t i = 0; i < script; i++)
        strv_push(ret, argv[i]);
    strv_pushf(ret, "%s%s", utf8_line, argv[script]);
    return true;
}
