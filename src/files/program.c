/* See program.h. The same places as for the launcher (sandbox/linux/launcher_path.h). */
#include "files/program.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/path.h"

#include <fcntl.h>
#include <unistd.h>

/* Seen from the folder of the running program. */
static const char *const places[] = {"", "../files", "../http", "../src/files", "../src/http"};

/* Absolute and clean, or NULL. */
static char *try(const char *base, const char *place, const char *name)
{
    AUTO_FREE char *joined = alloc_strf("%s/%s/%s", base, place, name);
    AUTO_FREE char *clean = path_clean("/", joined);

    return access(clean, X_OK) == 0 ? TAKE_PTR(clean) : NULL;
}

char *libexec_program(const char *name, struct err *err)
{
    AUTO_CLOSE int self = open("/proc/self/exe", O_PATH | O_CLOEXEC);
    AUTO_FREE char *program = self < 0 ? NULL : fd_target(self, err);
    AUTO_FREE char *dir = program ? path_parent(program) : NULL;
    char *found = NULL;

    for (size_t i = 0; dir && !found && i < sizeof places / sizeof *places; i++)
        found = try(dir, places[i], name);
    if (!found)
        found = try(CORDON_LIBEXEC, "", name);
    if (!found)
        err_set(err, ERR_NOT_FOUND, "the program %s is neither beside %s nor in " CORDON_LIBEXEC,
                name, program ? program : "this one");
    return found;
}
