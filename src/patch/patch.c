/* See patch.h. What a patch is once it has been read; the reading is in parse.c. */
#include "patch/patch.h"

#include "base/strv.h"

#include <stdlib.h>
#include <string.h>

bool span_eq(struct span a, struct span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.text, b.text, a.len) == 0);
}

void patch_free(struct patch *patch)
{
    if (!patch)
        return;
    for (size_t i = 0; i < patch->files_len; i++) {
        free(patch->files[i].path);
        free(patch->files[i].move_to);
    }
    free(patch->files);
    free(patch->chunks);
    free(patch->lines);
    free(patch->text);
    free(patch);
}

void patch_paths(const struct patch *patch, struct strv *ret)
{
    for (size_t i = 0; i < patch->files_len; i++) {
        strv_push(ret, patch->files[i].path);
        if (patch->files[i].move_to)
            strv_push(ret, patch->files[i].move_to);
    }
}
