/* See program.h. Looked for are a build tree, a tree that was moved as a whole, and the place that
 * was configured, in this order; never the PATH, which is somebody else's to set. */
#include "cli/program.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

int program_exec(const char *name, char *const *argv, struct err *err)
{
    static const char *const folders[] = {"", "../libexec/cordon/"};
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    AUTO_FREE char *folder = NULL;
    AUTO_FREE char *installed = alloc_strf(CORDON_LIBEXEC "/%s", name);

    self[len < 0 ? 0 : len] = '\0';
    folder = path_parent(self);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        AUTO_FREE char *path = alloc_strf("%s/%s%s", folder, folders[i], name);

        execv(path, argv);
        if (errno != ENOENT)
            return err_sys(err, "%s", path);
    }
    execv(installed, argv);
    return err_sys(err, "the program %s is neither beside %s nor at %s", name, self, installed);
}
