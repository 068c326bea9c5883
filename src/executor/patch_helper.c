/* See patch_helper.h. The profile's map does not do: without a sandbox there is none, and it is then that a
 * ledger could reach further than the command that left it. */
#include "executor/patch_helper.h"

#include "base/auto.h"
#include "base/path.h"
#include "patch/patch.h"
#include "policy/protect.h"
#include "workspace/workspace.h"

#include <string.h>

/* Those of `names`, which count from `root`, that lie below `dir`. */
static void add_below(const char *root, const struct strv *names, const char *dir, struct strv *ret)
{
    for (size_t i = 0; i < names->len; i++) {
        AUTO_FREE char *path = path_clean(root, names->items[i]);

        if (path_is_within(path, dir) && strlen(path) > strlen(dir))
            strv_push(ret, path + strlen(dir) + (dir[1] ? 1 : 0));
    }
}

void patch_helper_words(const struct workspace *workspace, const char *home, const char *dir,
                        const char *task, const char *form, struct strv *ret)
{
    AUTO(strv_done) struct strv names = {0};
    AUTO(strv_done) struct strv of_home = {0};

    strv_push(ret, PATCH_HELPER_NAME);
    strv_push(ret, task);
    strv_push(ret, form);
    protect_choice_names(&workspace->protect, &names);
    add_below(dir, &names, dir, ret);
    if (workspace->dir && strcmp(workspace->dir, dir) != 0)
        add_below(workspace->dir, &names, dir, ret);
    for (size_t i = 0; i < workspace->roots.len; i++)
        if (strcmp(workspace->roots.items[i], dir) != 0)
            add_below(workspace->roots.items[i], &names, dir, ret);
    protect_home_names(&of_home);
    if (home && *home == '/')
        add_below(home, &of_home, dir, ret);
}
