/* See patch_program.h. `cordon` is linked statically, so it runs where a profile shows nothing of
 * the system; the server's own program would need its libraries there. */
#include "server/patch_program.h"

#include "base/alloc.h"
#include "files/program.h"

#include <unistd.h>

char *patch_program_find(void)
{
    static const char installed[] = CORDON_BINDIR "/cordon";
    struct err ignored; /* the first patch says it */
    char *program = libexec_program("cordon", &ignored);

    if (!program && access(installed, X_OK) == 0)
        program = alloc_str(installed);
    return program;
}
