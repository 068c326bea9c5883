/* The inner half of `cordon patch` as a command: its words. */
#pragma once

#include "base/strv.h"

struct workspace;

/* `task` and `form` as the helper knows them (cli/patch.h). Behind them stand the names below `dir`, where it
 * applies, that are protected in sandboxes of the workspace and of the home directory (may be NULL), also when it
 * runs in none: whatever a command has left there for the next patch, those stay. */
void patch_helper_words(const struct workspace *workspace, const char *home, const char *dir,
                        const char *task, const char *form, struct strv *ret);
