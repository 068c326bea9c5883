/* change_list(): one root after the other is walked, with descriptors of what is real there and of what each step wrote. See
 * change.h. */
#include "layer/change.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "layer/conflicts.h"
#include "layer/rename.h"
#include "layer/walk.h"
#include "policy/protect.h"

#include <stdlib.h>
#include <string.h>

/* --- one root --- */

struct root_walk {
    struct walk_input in;
    int *ups;
    int *numbers;
    bool *is_open;
    struct strv paths; /* that were asked for */
};

static void root_walk_done(struct root_walk *walk)
{
    auto_close(&walk->in.real);
    for (size_t i = 0; i < walk->in.steps; i++)
        auto_close(&walk->ups[i]);
    free(walk->ups);
    free(walk->numbers);
    free(walk->is_open);
    strv_done(&walk->paths);
}

static int compare_paths(const void *a, const void *b)
{
    return path_compare(*(char *const *)a, *(char *const *)b);
}

/* What the query asks for of this root; false: nothing. Of the whole root `*ret_all`. */
static bool choose_paths(const struct layer_root *root, char *const *paths, struct strv *ret,
                         bool *ret_all)
{
    size_t len = root->path[1] ? strlen(root->path) + 1 : 1;

    *ret_all = !paths;
    for (; paths && *paths; paths++) {
        if (path_is_within(root->path, *paths))
            *ret_all = true;
        else if (path_is_within(*paths, root->path))
            strv_push(ret, *paths + len);
    }
    if (ret->len)
        qsort(ret->items, ret->len, sizeof *ret->items, compare_paths);
    return *ret_all || ret->len;
}

/* Opens what the steps up to `step` (0: all) have of the root. */
static int open_steps(const struct layer *layer, size_t root, int step, struct root_walk *walk,
                      struct err *err)
{
    size_t len;
    const struct layer_step *steps = layer_steps(layer, &len);

    walk->ups = alloc_zero(len, sizeof *walk->ups);
    walk->numbers = alloc_zero(len, sizeof *walk->numbers);
    walk->is_open = alloc_zero(len, sizeof *walk->is_open);
    for (size_t i = 0; i < len && (!step || steps[i].number <= step); i++) {
        int up = layer_open_up(layer, root, steps[i].number, err);

        if (up < 0 && err->code != ERR_NOT_FOUND)
            return -1;
        walk->ups[i] = up;
        walk->numbers[i] = steps[i].number;
        walk->is_open[i] = steps[i].is_shared || !steps[i].ended.tv_sec;
        walk->in.steps = i + 1;
    }
    walk->in.ups = walk->ups;
    walk->in.numbers = walk->numbers;
    walk->in.is_open = walk->is_open;
    return 0;
}

static int list_root(const struct layer *layer, const struct change_query *query,
                     struct root_walk *walk, struct changes *ret, struct strv *ret_problems,
                     struct err *err)
{
    size_t root = walk->in.root, len;
    const struct layer_root *at = &layer_roots(layer, &len)[root];
    bool is_all;

    if (at->is_direct || !choose_paths(at, query->paths, &walk->paths, &is_all))
        return 0;
    if (open_steps(layer, root, query->step, walk, err))
        return err_wrap(err, "the changes below %s", at->path);
    walk->in.from = query->step ? walk->in.steps - 1 : 0;
    if (!walk->in.steps || (query->step && walk->ups[walk->in.from] < 0))
        return 0;
    walk->in.real = layer_open_root(layer, root, err);
    if (walk->in.real < 0)
        return -1;
    walk->in.path = at->path;
    walk->in.paths = is_all ? NULL : &walk->paths;
    return walk_root(&walk->in, ret, ret_problems, err);
}

/* --- all of them --- */

static int check_step(const struct layer *layer, int step, struct err *err)
{
    size_t len;
    const struct layer_step *steps = layer_steps(layer, &len);

    for (size_t i = 0; i < len; i++)
        if (steps[i].number == step)
            return 0;
    if (!step)
        return 0;
    return err_set(err, ERR_NOT_FOUND, "layer %s has no step %d%s", layer_name(layer), step,
                   len ? "; \"cordon layers\" says how many there are" : "; it has none yet");
}

int change_list(const struct layer *layer, const struct change_query *query, struct changes *ret,
                struct strv *ret_problems, struct err *err)
{
    AUTO(changes_done) struct changes changes = {0};
    AUTO(strv_done) struct strv names = {0};
    size_t len;

    if (check_step(layer, query->step, err))
        return -1;
    layer_roots(layer, &len);
    protect_all_names(&names);
    strv_sort(&names);
    for (size_t i = 0; i < len; i++) {
        AUTO(root_walk_done)
        struct root_walk walk = {
            .in = {.root = i,
                   .real = -1,
                   .protected_names = &names,
                   .leaves_git = layer_has_git(layer) && !(query->flags & CHANGES_OF_GIT)}};

        if (list_root(layer, query, &walk, &changes, ret_problems, err))
            return -1;
    }
    changes_sort(&changes);
    strv_sort(ret_problems);
    if (!query->step && !(query->flags & CHANGES_WITHOUT_CONFLICTS) &&
        conflicts_mark(layer, &changes, err))
        return -1;
    if (!(query->flags & CHANGES_WITHOUT_RENAMES))
        changes_pair(layer, &names, &changes);
    changes_count(&changes);
    *ret = changes;
    changes = (struct changes){0};
    return 0;
}
