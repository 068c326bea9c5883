/* Whatever bytes come, the reader stays in bounds, comes to an end, and gives values that are in the text. */
#include "fuzz.h"

#include "policy/git_config.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct git_config_reader reader;
    size_t values = 0;

    git_config_begin(&reader, (const char *)data, size);
    while (git_config_next(&reader) != GIT_CONFIG_NOTHING) {
        values += strlen(reader.value) + 1; /* each needs at least its `=` besides */
        if (!*reader.value || values > size || reader.at > reader.end)
            abort();
    }
    git_config_done(&reader);
    return 0;
}
