/* See launcher_path.h. */
#include "sandbox/linux/launcher_path.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/program.h"
#include "base/str.h"

#include <stdlib.h>
#include <unistd.h>

char *launcher_path(struct err *err)
{
    const char *named = getenv("CORDON_LINUX_SANDBOX_EXE");
    AUTO_FREE char *self = NULL;
    struct err missing;
    char *found;

    if (named && *named) {
        if (path_is_clean(named) && access(named, X_OK) == 0)
            return alloc_str(named);
        err_set(err, ERR_NOT_FOUND,
                "CORDON_LINUX_SANDBOX_EXE names %s, which is not an absolute path of a program",
                named);
        return NULL;
    }
    found = program_find("cordon-linux-sandbox", &missing);
    if (found)
        return found;
    self = program_self();
    if (str_eq(path_name(self), "cordon"))
        return TAKE_PTR(self);
    *err = missing;
    err_wrap(err, "set CORDON_LINUX_SANDBOX_EXE to the path of the launcher");
    return NULL;
}
