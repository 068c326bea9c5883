/* See host_home.h. */
#include "server/host_home.h"

#include "base/path.h"

#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

char *host_home(void)
{
    const char *home = getenv("HOME");
    const struct passwd *user;

    if (home && *home == '/')
        return path_clean("/", home);
    user = getpwuid(geteuid());
    return path_clean("/", user ? user->pw_dir : "/");
}
