/* See launcher_path.h. The order is design.md's decision 2. */
#include "sandbox/linux/launcher_path.h"

#include "base/alloc.h"
#include "base/path.h"
#include "base/str.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LAUNCHER "cordon-linux-sandbox"

static char *executable(char *path)
{
    if (access(path, X_OK) == 0)
        return path;
    free(path);
    return NULL;
}

/* Beside the program, and where the build tree and an installation have it, seen from there. */
static char *near_program(const char *program)
{
    static const char *const places[] = {
        "/" LAUNCHER,
        "/../sandbox/launcher/" LAUNCHER,
        "/../libexec/cordon/" LAUNCHER,
    };
    char *dir = path_parent(program);
    char *found = NULL;

    for (size_t i = 0; i < sizeof places / sizeof *places && !found; i++) {
        char *joined = alloc_strf("%s%s", dir, places[i]);

        found = executable(path_clean("/", joined));
        free(joined);
    }
    free(dir);
    return found;
}

char *launcher_path(struct err *err)
{
    const char *named = getenv("CORDON_LINUX_SANDBOX_EXE");
    char program[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
    char *found;

    if (named && *named) {
        if (path_is_clean(named) && (found = executable(alloc_str(named))))
            return found;
        err_set(err, ERR_NOT_FOUND,
                "CORDON_LINUX_SANDBOX_EXE names %s, which is not an absolute path of a program",
                named);
        return NULL;
    }
    program[len < 0 ? 0 : len] = '\0';
    found = near_program(program);
    if (!found)
        found = executable(alloc_str(CORDON_LIBEXEC "/" LAUNCHER));
    if (!found && str_eq(path_name(program), "cordon"))
        found = alloc_str(program);
    if (!found)
        err_set(err, ERR_NOT_FOUND,
                "the launcher " LAUNCHER " is neither beside %s nor in " CORDON_LIBEXEC
                ": set CORDON_LINUX_SANDBOX_EXE to its path",
                program);
    return found;
}
