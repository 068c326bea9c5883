/* See host_shell.h. */
#include "workspace/host_shell.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "rules/shell/shell_choice.h"
#include "workspace/finder.h"

#include <pwd.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { ENTRY_MAX = 16384 }; /* bytes; what getpwuid_r(3) advises where nothing is known */

char *host_shell(const char *search_path)
{
    AUTO_FREE char *entry = alloc_zero(ENTRY_MAX, 1);
    struct host_finder finder;
    struct passwd account;
    struct passwd *found = NULL;

    host_finder_init(&finder, search_path, "/");
    if (getpwuid_r(getuid(), &account, entry, ENTRY_MAX, &found))
        found = NULL;
    return shell_choose(found ? found->pw_shell : NULL, &finder.finder);
}

static const char *value_of(char *const *env, const char *prefix)
{
    for (; env && *env; env++)
        if (str_starts(*env, prefix))
            return *env + strlen(prefix);
    return NULL;
}

char *host_shell_for(char *const *env)
{
    const char *shell = value_of(env, "SHELL=");

    if (shell && *shell == '/' && shell_kind_of(shell) != SHELL_UNKNOWN)
        return alloc_str(shell);
    return host_shell(value_of(env, "PATH="));
}
