/* cordon-linux-sandbox, the program. Started without a plan it is used in place of Codex's
 * helper of a similar name: that needs the policy code, so `cordon` beside it takes over. */
#include "sandbox/launcher/launcher.h"

#include "sandbox/launcher/plan_format.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Where `cordon` is, seen from this program: installed, in the build tree, or beside it. One place for each, since at a
 * second one there might be somebody else's. */
static const struct {
    const char *here;
    const char *cordon;
} layouts[] = {
    {"/libexec/cordon/", "../../bin/cordon"},
    {"/src/sandbox/launcher/", "../../cli/cordon"},
    {"/", "cordon"},
};

static const char *cordon_from(const char *here)
{
    size_t i = 0;

    for (;; i++) {
        size_t len = strlen(layouts[i].here);

        if (strlen(here) >= len && strcmp(here + strlen(here) - len, layouts[i].here) == 0)
            return layouts[i].cordon;
    }
}

static int exec_cordon(char **argv)
{
    char self[PATH_MAX];
    char path[PATH_MAX + 32];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash;

    self[len < 0 ? 0 : len] = '\0';
    slash = strrchr(self, '/');
    if (!slash)
        return 1;
    slash[1] = '\0';
    argv[0] = (char *)"codex-linux-sandbox";
    snprintf(path, sizeof path, "%s%s", self, cordon_from(self));
    execv(path, argv);
    fprintf(stderr, "cordon-linux-sandbox: cannot run %s: %s\n", path, strerror(errno));
    return 1;
}

int main(int argc, char **argv)
{
    if ((argc == 2 || argc == 3) && strcmp(argv[0], PLAN_LAUNCHER_NAME) == 0)
        return launcher_main(argv[1], argv[2]);
    return exec_cordon(argv);
}
