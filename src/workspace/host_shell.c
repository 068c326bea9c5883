/* See host_shell.h. */
#include "workspace/host_shell.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "rules/shell/shell_choice.h"
#include "workspace/finder.h"

#include <pwd.h>
#include <stddef.h>
#include <unistd.h>

enum { ENTRY_MAX = 16384 }; /* bytes; what getpwuid_r(3) advises where nothing is known */

static char *users_shell(char *const *env)
{
    AUTO_FREE char *entry = alloc_zero(ENTRY_MAX, 1);
    struct host_finder finder;
    struct passwd account;
    struct passwd *found = NULL;

    host_finder_init(&finder, env, "/");
    if (getpwuid_r(getuid(), &account, entry, ENTRY_MAX, &found))
        found = NULL;
    return shell_choose(found ? found->pw_shell : NULL, &finder.finder);
}

char *host_shell(char *const *env)
{
    const char *shell = env_value(env, "SHELL");

    if (shell && *shell == '/' && shell_kind_of(shell) != SHELL_UNKNOWN)
        return alloc_str(shell);
    return users_shell(env);
}
