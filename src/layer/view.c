/* See view.h. Overlayfs shows the newest of all that have a name, unless a newer step hides it: by a whiteout, by a
 * directory of its own that is opaque, or by something else than a directory on the way. The first of
 * these is an entry of the name itself; the others hide the whole directory, which its flags say.
 *
 * A step that hides a directory has nothing older shine through; what that step itself has there is seen. */
#include "layer/view.h"

#include "layer/change.h"

enum { PERMISSIONS = 07777 };

bool view_covers(const uint8_t *dir, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (dir[i] & VIEW_COVERS)
            return true;
    return false;
}

/* What the steps from `from` up to `to` show: `*ret` is what they have there, NULL: nothing. false: what is
 * older shines through. */
static bool look(const struct view_name *name, size_t from, size_t to,
                 const struct view_entry **ret)
{
    *ret = NULL;
    for (size_t i = 0; i < name->len; i++) {
        const struct view_entry *entry = &name->entries[i];

        if (entry->step >= to)
            continue;
        if (entry->step < from)
            break;
        if (!entry->is_whiteout && !view_covers(name->dir, entry->step + 1, to))
            *ret = entry;
        return true;
    }
    return view_covers(name->dir, from, to);
}

static bool has_whiteout(const struct view_name *name, size_t step)
{
    for (size_t i = 0; i < name->len; i++)
        if (name->entries[i].step == step)
            return name->entries[i].is_whiteout;
    return false;
}

/* The first step by which it was gone for good. */
static size_t removed_by(const struct view_name *name)
{
    size_t step = name->from;

    for (size_t i = 0; i < name->len; i++)
        if (!name->entries[i].is_whiteout && name->entries[i].step >= step)
            step = name->entries[i].step + 1;
    while (step + 1 < name->steps && !(name->dir[step] & VIEW_COVERS) && !has_whiteout(name, step))
        step++;
    return step;
}

static size_t first_of(const struct view_name *name)
{
    size_t first = name->len ? name->entries[name->len - 1].step : name->steps - 1;

    for (size_t i = 0; i < first; i++)
        if (name->dir[i] & VIEW_COVERS)
            return i;
    return first;
}

void view_of(const struct view_name *name, struct view *ret)
{
    bool has_older;

    *ret = (struct view){0};
    ret->is_untouched = !look(name, name->from, name->steps, &ret->now);
    has_older = look(name, 0, name->from, &ret->before);
    ret->is_before_real = !has_older && name->has_real;
    if (ret->is_untouched)
        return;
    ret->step = ret->now ? ret->now->step : removed_by(name);
    ret->first = first_of(name);
}

void view_below(const struct view_name *name, uint8_t *ret)
{
    for (size_t i = 0; i < name->steps; i++)
        ret[i] = name->dir[i] & VIEW_COVERS;
    for (size_t i = 0; i < name->len; i++) {
        const struct view_entry *entry = &name->entries[i];
        bool is_dir = !entry->is_whiteout && S_ISDIR(entry->mode);

        ret[entry->step] |= is_dir ? VIEW_HAS_DIR : VIEW_COVERS;
    }
}

int view_kind(mode_t now, mode_t before, bool is_same)
{
    if (!now || !before)
        return now ? CHANGE_ADDED : before ? CHANGE_DELETED : 0;
    if ((now & S_IFMT) != (before & S_IFMT))
        return CHANGE_TYPE;
    if (!S_ISDIR(now) && !is_same)
        return CHANGE_MODIFIED;
    if (!S_ISLNK(now) && (now & PERMISSIONS) != (before & PERMISSIONS))
        return CHANGE_MODE;
    return 0;
}
