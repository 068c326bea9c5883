/* What is said of a change: stamps and marks as text. How changes are found is in walk.c. */
#include "layer/change.h"

#include "base/alloc.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void change_stamp_of(const struct stat *st, struct change_stamp *ret)
{
    *ret = (struct change_stamp){
        .dev = st->st_dev,
        .ino = st->st_ino,
        .size = (uint64_t)st->st_size,
        .ctime_ns = (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec,
        .mode = st->st_mode,
    };
}

bool change_stamp_equal(const struct change_stamp *one, const struct change_stamp *other)
{
    return one->dev == other->dev && one->ino == other->ino && one->size == other->size &&
           one->ctime_ns == other->ctime_ns && one->mode == other->mode;
}

char *change_stamp_format(const struct change_stamp *stamp)
{
    char text[96] = "";

    if (stamp->mode)
        snprintf(text, sizeof text, "%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx32,
                 stamp->dev, stamp->ino, stamp->size, (uint64_t)stamp->ctime_ns, stamp->mode);
    return alloc_str(text);
}
