/* See side.h. By descriptors, and through no link: what somebody puts in a file's place since it was listed is seen
 * by what was opened, and not read. */
#include "layer/side.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "layer/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

/* Borrowed. */
static int dir_of(struct sides *sides, size_t root, int step, struct err *err)
{
    struct side_dir dir = {.root = root, .step = step};

    for (size_t i = 0; i < sides->len; i++)
        if (sides->items[i].root == root && sides->items[i].step == step)
            return sides->items[i].fd;
    dir.fd = step ? layer_open_up(sides->layer, root, step, err)
                  : layer_open_root(sides->layer, root, err);
    if (dir.fd < 0)
        return -1;
    sides->items = alloc_grow(sides->items, sides->len, &sides->cap, sizeof *sides->items);
    sides->items[sides->len++] = dir;
    return dir.fd;
}

static int fail_changed(const char *path, struct err *err)
{
    return err_set(err, ERR_CONFLICT, "%s is something else than it was when it was listed", path);
}

int sides_open(struct sides *sides, const struct change *change, enum change_side side,
               struct err *err)
{
    bool is_real = side == CHANGE_REAL;
    const struct change_stamp *stamp = is_real ? &change->real : &change->layer;
    const char *path = is_real && change->from ? change->from : change->path;
    int dir = dir_of(sides, change->root, is_real ? change->base_step : change->step, err);
    AUTO_CLOSE int fd = -1;
    struct stat st;

    if (!stamp->mode)
        return err_set(err, ERR_NOT_FOUND, "%s is %s", path,
                       is_real ? "new: there is no real one" : "gone in the layer");
    if (dir < 0)
        return -1;
    fd = walk_open(dir, path, S_ISREG(stamp->mode) ? O_RDONLY : O_PATH);
    if (fd < 0 && errno == ENOENT)
        return err_set(err, ERR_CONFLICT, "%s is gone since it was listed", path);
    if (fd < 0 && (errno == ELOOP || errno == ENOTDIR || errno == ENXIO))
        return fail_changed(path, err);
    if (fd < 0 || fstat(fd, &st))
        return err_sys(err, "%s", path);
    if ((st.st_mode & S_IFMT) != (stamp->mode & S_IFMT))
        return fail_changed(path, err);
    return TAKE_FD(fd);
}

void sides_done(struct sides *sides)
{
    for (size_t i = 0; i < sides->len; i++)
        auto_close(&sides->items[i].fd);
    free(sides->items);
    *sides = (struct sides){0};
}

int change_open(const struct layer *layer, const struct change *change, enum change_side side,
                struct err *err)
{
    AUTO(sides_done) struct sides sides = {.layer = layer};

    return sides_open(&sides, change, side, err);
}
