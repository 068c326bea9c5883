/* See account.h. The file is read, and the C library not asked: for accounts that are kept elsewhere it would load modules, which a
 * static program cannot unless they were made for the very C library that is in it. Who has such an account has $HOME and $SHELL
 * from the login, which everybody who asks here looks at first. */
#include "base/account.h"

#include "base/alloc.h"
#include "base/path.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void account_find(struct account *ret)
{
    FILE *file = fopen("/etc/passwd", "re");
    const struct passwd *user = NULL;

    *ret = (struct account){0};
    while (file && (user = fgetpwent(file)) && user->pw_uid != geteuid())
        continue;
    if (user && user->pw_dir[0] == '/')
        ret->home = path_clean("/", user->pw_dir);
    if (user && user->pw_shell[0])
        ret->shell = alloc_str(user->pw_shell);
    if (file)
        fclose(file);
}

void account_done(struct account *account)
{
    free(account->home);
    free(account->shell);
}
