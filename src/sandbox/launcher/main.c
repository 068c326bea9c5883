/* cordon-linux-sandbox, the program. Started without a plan it is used in place of Codex's
 * helper of a similar name: that needs the policy code, so `cordon` beside it takes over. */
#include "sandbox/launcher/launcher.h"

#include "sandbox/launcher/plan_format.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The places where `cordon` may be, seen from this program: the build tree, beside, and the
 * installed layout (PREFIX/libexec/cordon, PREFIX/bin). */
static const char *const cordon_places[] = {"cordon", "../../cli/cordon", "../../bin/cordon"};

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
    for (size_t i = 0; i < sizeof cordon_places / sizeof *cordon_places; i++) {
        snprintf(path, sizeof path, "%s%s", self, cordon_places[i]);
        execv(path, argv);
        if (errno != ENOENT && errno != ENOTDIR)
            break;
    }
    fprintf(stderr, "cordon-linux-sandbox: cannot run %s: %s\n", path, strerror(errno));
    return 1;
}

int main(int argc, char **argv)
{
    if ((argc == 2 || argc == 3) && strcmp(argv[0], PLAN_LAUNCHER_NAME) == 0)
        return launcher_main(argv[1], argv[2]);
    return exec_cordon(argv);
}
