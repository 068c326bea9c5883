/* What was changed since a step began may be what the command never saw, and accepting would silently put an
 * older text in its place. The kernel keeps the one witness that nobody can set: ctime. Every write, chmod, link
 * and rename of a file moves it, so a real file whose ctime is older than the begin of the first step that touched
 * the path is what the command had before it. (Comparing with the birth of the layer's copy, as one would think
 * first, misses who edits between the begin and the copy.)
 *
 * Folders are different: their ctime moves with every name in them, together with their mtime. Where the two are not
 * equal something else happened: it was renamed, so that all below it are other files with old times; or somebody
 * changed its permissions or its mtime, which costs a false conflict. A folder that was put there and then got
 * a name made in it looks like one that was not: the one thing that is missed, and known to be.
 *
 * What we did ourselves is no conflict: an accept, or the taking back of one, notes the stamps that it leaves
 * (known.h), and a path that still has them was touched by nobody.
 *
 * File systems stamp with the time of the last tick, which is far behind where the processors are busy; so the begin is
 * taken from that clock (clock_stamp_ns()). Where a file system has another one, ten milliseconds count towards conflict. */
#include "layer/conflict.h"

#define GRACE_NS INT64_C(10000000)

bool conflict_is_since(int64_t ns, int64_t base_ns)
{
    return ns >= base_ns - GRACE_NS;
}

enum conflict_why conflict_of(const struct conflict_look *look)
{
    const struct change_stamp *real = look->real;

    if (look->known && change_stamp_equal(look->known, real))
        return CONFLICT_NONE;
    if (!real->mode)
        return look->is_copy && look->layer->mode ? CONFLICT_GONE : CONFLICT_NONE;
    if (!S_ISDIR(real->mode) && conflict_is_since(real->ctime_ns, look->base_ns))
        return CONFLICT_CHANGED;
    if (look->moved_ns && conflict_is_since(look->moved_ns, look->base_ns))
        return CONFLICT_MOVED;
    return CONFLICT_NONE;
}

int64_t conflict_folder(const struct change_stamp *folder, int64_t mtime_ns,
                        const struct change_stamp *known)
{
    if (folder->ctime_ns == mtime_ns)
        return 0;
    if (known && known->ino == folder->ino && known->dev == folder->dev &&
        known->ctime_ns == folder->ctime_ns)
        return 0;
    return folder->ctime_ns;
}
