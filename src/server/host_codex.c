/* See host_codex.h. */
#include "server/host_codex.h"

#include "base/auto.h"
#include "base/path.h"
#include "server/host_home.h"

#include <stdlib.h>
#include <sys/stat.h>

/* NULL: not set. */
static const char *named_home(void)
{
    const char *named = getenv("CODEX_HOME");

    return named && *named ? named : NULL;
}

char *host_codex_home(void)
{
    AUTO_FREE char *home = host_home();
    const char *named = named_home();

    return named && *named == '/' ? path_clean("/", named) : path_join(home, ".codex");
}

char *host_codex_find(struct err *err)
{
    const char *named = named_home();
    AUTO_FREE char *found = named ? realpath(named, NULL) : NULL;
    struct stat st;

    if (!named)
        return host_codex_home();
    if (!found || stat(found, &st) || !S_ISDIR(st.st_mode)) {
        err_set(err, ERR_NOT_FOUND, "CODEX_HOME points to \"%s\", but that path %s", named,
                found ? "is not a directory" : "does not exist");
        return NULL;
    }
    return TAKE_PTR(found);
}
