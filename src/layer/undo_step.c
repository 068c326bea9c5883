/* Taking a step out of a layer, with what it wrote.
 *
 * Steps lie over each other, so one can go from between the others as long as none of the later ones has to do with the
 * same names: with the name itself, with something above it that hides it, or with something below a directory that
 * the step has made. A directory that was there before, and is in the step only because something below it was changed,
 * is nothing that it wrote, unless its mode was.
 *
 * The step is gone through together with the later ones, as far as these have the same directories. */
#include "layer/inside.h"
#include "layer/overlaid.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct check {
    const struct layer *layer;
    size_t root;
    int step;
    int up;           /* of the step */
    int later;        /* a later step */
    int later_up;     /* and what that has of the root */
    struct strv todo; /* directories that both have, relative; "" is the root */
    struct err *err;
};

static void check_done(struct check *check)
{
    if (check->up >= 0)
        close(check->up);
    if (check->later_up >= 0)
        close(check->later_up);
    strv_done(&check->todo);
}

static int open_in(int up, const char *path, int flags)
{
    const struct sys_open_how how = {
        .flags = (uint64_t)(flags | O_DIRECTORY | O_CLOEXEC),
        .resolve = SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS,
    };

    return sys_openat2(up, *path ? path : ".", &how);
}

static int conflict(const struct check *check, const char *path)
{
    AUTO_FREE char *whole = *path ? path_join(check->layer->record.roots[check->root].path, path)
                                  : alloc_str(check->layer->record.roots[check->root].path);

    return err_set(check->err, ERR_CONFLICT,
                   "step %d cannot go alone: step %d has changed %s, too; undo that one first",
                   check->step, check->later, whole);
}

/* The mode that the directory had before the step; 0: it was not there. */
static mode_t mode_before(const struct check *check, const char *path)
{
    const struct layer *layer = check->layer;
    struct err ignored;

    for (size_t i = layer->records_len + 1; i-- > 0;) {
        bool is_real = i == 0;
        AUTO_CLOSE int up = -1;
        AUTO_CLOSE int dir = -1;
        struct stat st;

        if (!is_real && layer->records[i - 1].step.number >= check->step)
            continue;
        up = is_real
                 ? layer_open_root(layer, check->root, &ignored)
                 : layer_open_up(layer, check->root, layer->records[i - 1].step.number, &ignored);
        dir = up < 0 ? -1 : open_in(up, path, O_PATH);
        if (dir >= 0 && fstat(dir, &st) == 0)
            return st.st_mode;
    }
    return 0;
}

struct place_in {
    struct check *check;
    const char *path;
    int dir, later;
};

static int check_name(void *data, const char *name)
{
    const struct place_in *place = data;
    struct check *check = place->check;
    AUTO_FREE char *path = NULL;
    struct stat own, later;

    if (sys_fault() || fstatat(place->later, name, &later, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? 0 : err_sys(check->err, "step %d: %s", check->later, name);
    path = *place->path ? path_join(place->path, name) : alloc_str(name);
    if (sys_fault() || fstatat(place->dir, name, &own, AT_SYMLINK_NOFOLLOW))
        return err_sys(check->err, "step %d: %s", check->step, path);
    if (!S_ISDIR(own.st_mode) || !S_ISDIR(later.st_mode) || overlaid_is_opaque(place->dir, name) ||
        overlaid_is_opaque(place->later, name) || !overlaid_is_copy(place->dir, name) ||
        mode_before(check, path) != own.st_mode)
        return conflict(check, path);
    strv_push(&check->todo, path);
    return 0;
}

static int check_dir(struct check *check, const char *path)
{
    AUTO_CLOSE int dir = open_in(check->up, path, O_RDONLY);
    AUTO_CLOSE int later = dir < 0 ? -1 : open_in(check->later_up, path, O_RDONLY);
    struct place_in place = {.check = check, .path = path, .dir = dir, .later = later};

    if (later < 0)
        return err_sys(check->err, "looking at %s in step %d", path,
                       dir < 0 ? check->step : check->later);
    return store_list(dir, ".", check_name, &place, check->err);
}

static int check_root(const struct layer *layer, size_t root, int step, int later, struct err *err)
{
    AUTO(check_done)
    struct check check = {.layer = layer,
                          .root = root,
                          .step = step,
                          .later = later,
                          .up = -1,
                          .later_up = -1,
                          .err = err};
    struct stat st;
    struct err why;

    check.up = layer_open_up(layer, root, step, &why);
    if (check.up >= 0)
        check.later_up = layer_open_up(layer, root, later, &why);
    if (check.later_up < 0 && why.code == ERR_NOT_FOUND)
        return 0;
    if (check.later_up < 0) {
        *err = why;
        return -1;
    }
    if (sys_fault() || fstat(check.up, &st))
        return err_sys(err, "step %d", step);
    if (mode_before(&check, "") != st.st_mode)
        return conflict(&check, "");
    strv_push(&check.todo, "");
    while (check.todo.len) {
        AUTO_FREE char *path = check.todo.items[--check.todo.len];

        check.todo.items[check.todo.len] = NULL;
        if (check_dir(&check, path))
            return -1;
    }
    return 0;
}

int layer_undo_step(struct layer *layer, int number, struct err *err)
{
    const struct step_record *record = layer_step_find(layer, number);

    if (layer->lock < 0)
        return err_set(err, ERR_BUG, "layer %s is open for reading", layer_name(layer));
    if (!layer_is_quiet(layer))
        return err_set(err, ERR_BUSY, "commands live in layer %s; end them first",
                       layer_name(layer));
    if (!record)
        return err_set(err, ERR_NOT_FOUND, "layer %s has no step %d", layer_name(layer), number);
    for (size_t i = 0; i < layer->records_len; i++) {
        int later = layer->records[i].step.number;

        for (size_t root = 0; later > number && root < layer->record.roots_len; root++)
            if (check_root(layer, root, number, later, err))
                return -1;
    }
    return step_remove(layer, number, err);
}
