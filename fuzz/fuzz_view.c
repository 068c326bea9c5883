/* A directory in up to eight steps, and a name in it, from bytes: what is seen of it is what is left when one step
 * after the other is laid over the real one. */
#include "fuzz.h"

#include "layer/view.h"

#include <stdlib.h>

enum { STEPS = 8 };

/* What the steps from `from` up to `to` leave of what was there, which is a step or one of these. */
enum { REAL = -1, NONE = -2 };

static void check(bool holds)
{
    if (!holds)
        abort();
}

static int lay(const struct view_name *name, size_t from, size_t to, int seen, bool *ret_touched)
{
    *ret_touched = false;
    for (size_t step = from; step < to; step++) {
        if (name->dir[step] & VIEW_COVERS) {
            seen = NONE;
            *ret_touched = true;
        }
        for (size_t i = 0; i < name->len; i++)
            if (name->entries[i].step == step) {
                seen = name->entries[i].is_whiteout ? NONE : (int)step;
                *ret_touched = true;
            }
    }
    return seen;
}

static int seen_of(const struct view_entry *entry, bool is_real)
{
    return entry ? (int)entry->step : is_real ? REAL : NONE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t dir[STEPS], below[STEPS];
    struct view_entry entries[STEPS];
    struct view_name name = {.dir = dir, .entries = entries};
    int now, before;
    bool is_touched, was_touched;
    struct view view;

    if (size < 2)
        return 0;
    name.has_real = data[0] & 1;
    name.steps = size - 1 < STEPS ? size - 1 : STEPS;
    name.from = (data[0] >> 1) % name.steps;
    for (size_t i = 0; i < name.steps; i++)
        dir[i] = data[1 + i] & (VIEW_HAS_DIR | VIEW_COVERS);
    for (size_t i = name.steps; i-- > 0;)
        if ((dir[i] & VIEW_HAS_DIR) && (data[1 + i] & 4))
            entries[name.len++] = (struct view_entry){
                .step = i,
                .mode = data[1 + i] & 8 ? S_IFDIR | 0755 : S_IFREG | 0644,
                .is_whiteout = data[1 + i] & 16,
            };
    before = lay(&name, 0, name.from, name.has_real ? REAL : NONE, &was_touched);
    now = lay(&name, name.from, name.steps, before, &is_touched);
    view_of(&name, &view);
    check(view.is_untouched == !is_touched);
    if (view.is_untouched)
        return 0;
    check(seen_of(view.now, false) == now);
    check(seen_of(view.before, view.is_before_real) == before);
    check(view.first <= view.step && view.step < name.steps && view.step >= name.from);
    /* what is gone was gone when that step had ended, and not before */
    if (now == NONE) {
        check(lay(&name, 0, view.step + 1, NONE, &was_touched) == NONE);
        if (view.step > name.from && before != NONE)
            check(lay(&name, name.from, view.step, before, &was_touched) != NONE);
    }
    view_below(&name, below);
    for (size_t i = 0; i < name.steps; i++)
        check(!(dir[i] & VIEW_COVERS) || (below[i] & VIEW_COVERS));
    return 0;
}
