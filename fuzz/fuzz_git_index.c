/* Whatever bytes come, the parser stays in bounds, and what it calls paths are strings. */
#include "fuzz.h"

#include "policy/git_index.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct strv paths = {0};
    char *shared = NULL;
    struct err err;

    if (git_index_submodules((const char *)data, size, &paths, &shared, &err) == 0)
        for (size_t i = 0; i < paths.len; i++)
            if (strlen(paths.items[i]) > size)
                abort();
    strv_done(&paths);
    free(shared);
    return 0;
}
