/* See map_change.h. Names that the sandbox itself has put there in the meantime do not count. */
#include "sandbox/map_change.h"

#include "base/str.h"
#include "policy/access.h"
#include "sandbox/linux/placeholder.h"

static bool entry_is_same(const struct access_entry *old, const struct access_entry *new)
{
    if (!str_eq(old->path, new->path) || old->access != new->access)
        return false;
    return old->kind == new->kind ||
           (old->kind == ACCESS_MISSING && placeholder_file_is(new->path)); /* put there by us */
}

/* A guard that is asked for no longer does no harm: that of HEAD beside a .git that we put there.
 */
static bool entries_are_same(const struct access_map *old, const struct access_map *new)
{
    size_t k = 0;

    for (size_t i = 0; i < old->len; i++) {
        const struct access_entry *entry = &old->entries[i];

        if (k < new->len && entry_is_same(entry, &new->entries[k]))
            k++;
        else if (entry->kind != ACCESS_MISSING || !entry->is_protected)
            return false;
    }
    return k == new->len;
}

bool map_is_same(const struct access_map *old, const struct access_map *new)
{
    if (old->links_len != new->links_len || old->restricted != new->restricted ||
        old->network != new->network || !entries_are_same(old, new))
        return false;
    for (size_t i = 0; i < old->links_len; i++)
        if (!str_eq(old->links[i].path, new->links[i].path) ||
            !str_eq(old->links[i].target, new->links[i].target))
            return false;
    return true;
}
