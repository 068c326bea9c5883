/* What steps hold, changed by hand while nobody has them mounted: the second half of trees.h.
 *
 * A step hides what is below it in two ways: a whiteout (a device 0:0) hides one name, and a directory that replaced
 * another one (user.overlay.opaque) all names. When one path in there is accepted and leaves the layer, the real one
 * must show, and all others must stay hidden. So the directories on the way are *exposed*: what hid all of
 * it is replaced by whiteouts of the single names, one level deep; directories of the step in it become opaque in turn.
 * At each moment of this, the layer shows the same.
 *
 * Everything here may be done twice, so that whoever goes on after a kill just does it again. */
#include "layer/trees.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/sys.h"
#include "layer/inside.h"
#include "layer/overlaid.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static const char expose_name[] = "expose.new"; /* in the layer's folder */
static const char whiteout_name[] = "whiteout"; /* as well */

/* --- what is shown --- */

/* A directory above the path, of those whose names end behind `from`, hides what is below the step. */
static bool hides_above(struct trees *trees, size_t root, int step, const char *path,
                        size_t from) /* style: where, and from where on */
{
    for (const char *slash = path + from; (slash = strchr(slash, '/')); slash++) {
        AUTO_FREE char *dir = alloc_strn(path, (size_t)(slash - path));
        int fd = trees_folder(trees, root, step, dir);

        if (fd < 0)
            return errno != ENOENT;
        if (overlaid_is_opaque(fd, NULL))
            return true;
    }
    return false;
}

/* The folder that was asked for last is above those of the path, or is its own: how long its name is with the slash. 0: it
 * is not. */
static size_t known_len(const struct trees_hiding *last, size_t root, const char *path)
{
    const size_t len = last->parent && last->root == root ? strlen(last->parent) : 0;

    return len && strncmp(last->parent, path, len) == 0 && path[len] == '/' ? len + 1 : 0;
}

/* Nothing hides what is in the first `len` bytes of the path, since nothing hides what is in the folder of last, or in it. */
static bool is_known_free(const struct trees_hiding *last, size_t root, const char *path,
                          size_t len)
{
    return last->parent && last->root == root && !last->step &&
           strncmp(last->parent, path, len) == 0 &&
           (last->parent[len] == '/' || !last->parent[len]);
}

/* The newest step in which a directory above the path hides what is below; as an index and one, 0: none. Mostly it was asked for
 * the path before, or for the folder that this one lies in, or for one in this folder. */
static size_t hiding_step(struct trees *trees, size_t root, const char *path)
{
    const char *slash = strrchr(path, '/');
    struct trees_hiding *last = trees_hiding(trees);
    const size_t len = slash ? (size_t)(slash - path) : 0;
    const size_t from = known_len(last, root, path);
    const size_t least = from ? last->step : 0;
    size_t i = trees_steps(trees);

    if (!len)
        return 0;
    if (is_known_free(last, root, path, len)) {
        last->parent[len] = '\0'; /* what is below it may be forgotten */
        return 0;
    }
    if (from == len + 1)
        return last->step;
    while (i > least && !hides_above(trees, root, trees_step(trees, i - 1), path, from))
        i--;
    free(last->parent);
    *last = (struct trees_hiding){.parent = alloc_strn(path, len), .root = root, .step = i};
    return i;
}

static void forget_hiding(struct trees *trees, const char *path)
{
    struct trees_hiding *last = trees_hiding(trees);
    const size_t len = strlen(path);

    if (last->parent && strncmp(last->parent, path, len) == 0) {
        free(last->parent);
        last->parent = NULL;
    }
}

bool upper_is_silent(struct trees *trees, size_t root, const char *path)
{
    struct stat st;

    if (hiding_step(trees, root, path))
        return false;
    for (size_t i = trees_steps(trees); i > 0; i--)
        if (trees_stat(trees, root, trees_step(trees, i - 1), path, &st) == 0)
            return false;
    return true;
}

/* --- exposing --- */

/* A directory in a step. */
struct spot {
    struct trees *trees;
    size_t root;
    size_t step; /* index */
    const char *path;
};

/* Our own names beside real files are there for a moment only. */
static int push_name(void *data, const char *name)
{
    if (!str_starts(name, OWN_PREFIX))
        strv_push(data, name);
    return 0;
}

/* The names that are below a step there: real ones, and those of older steps. Some may be there more than once. */
static int names_below(const struct spot *spot, struct strv *ret, struct err *err)
{
    for (size_t i = 0; i <= spot->step; i++) {
        int step = i ? trees_step(spot->trees, i - 1) : TREE_REAL;
        int dir = trees_folder(spot->trees, spot->root, step, spot->path);

        if (dir < 0 && errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
            return err_sys(err, "looking at %s", spot->path);
        if (dir >= 0 && store_list(dir, ".", push_name, ret, err))
            return -1;
    }
    return 0;
}

/* One device has many names, as overlayfs does it: to make one is what takes long. */
static int make_whiteout(const struct layer *layer, int dir, const char *name)
{
    const int folder = layer_fd(layer);

    for (int i = 0; i < 2; i++) {
        if (sys_fault())
            return -1;
        if (linkat(folder, whiteout_name, dir, name, 0) == 0)
            return 0;
        if (errno != ENOENT || mknodat(folder, whiteout_name, S_IFCHR, makedev(0, 0)))
            break;
    }
    if (errno == EEXIST)
        return -1;
    return mknodat(dir, name, S_IFCHR, makedev(0, 0)); /* it has too many, or may have none */
}

static int hide_names(const struct layer *layer, int dir, const struct strv *names, struct err *err)
{
    for (size_t i = 0; i < names->len; i++) {
        const char *name = names->items[i];
        struct stat st;

        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
            if (S_ISDIR(st.st_mode) && overlaid_set_opaque(dir, name))
                return err_sys(err, "hiding what is below %s", name);
        } else if (make_whiteout(layer, dir, name) && errno != EEXIST) {
            return err_sys(err, "hiding %s", name);
        }
    }
    return 0;
}

static int expose_opaque(const struct spot *spot, int dir, struct err *err)
{
    AUTO(strv_done) struct strv names = {0};

    if (names_below(spot, &names, err) || hide_names(trees_layer(spot->trees), dir, &names, err))
        return -1;
    if (overlaid_clear_opaque(dir))
        return err_sys(err, "changing the folder %s of a step", spot->path);
    return 0;
}

/* Puts a directory in the place of the whiteout. */
static int expose_whiteout(const struct spot *spot, struct err *err)
{
    const struct layer *layer = trees_layer(spot->trees);
    AUTO(strv_done) struct strv names = {0};
    AUTO_CLOSE int made = -1;
    struct stat st = {.st_mode = 0755};
    const char *name;
    int parent;

    if (store_discard(layer, layer_fd(layer), expose_name, err) || names_below(spot, &names, err))
        return -1;
    trees_stat(spot->trees, spot->root, TREE_REAL, spot->path, &st);
    st.st_mode = trees_real_mode(spot->trees, spot->root, spot->path, st.st_mode);
    made = store_make_dir(layer_fd(layer), expose_name, 0700, err);
    if (made < 0 || hide_names(layer, made, &names, err))
        return -1;
    parent = trees_parent(spot->trees, spot->root, trees_step(spot->trees, spot->step), spot->path,
                          &name);
    if (parent < 0 || sys_fault() ||
        fchmodat(layer_fd(layer), expose_name, st.st_mode & 01777, 0) || sys_fault() ||
        renameat2(layer_fd(layer), expose_name, parent, name, RENAME_EXCHANGE))
        return err_sys(err, "changing %s of a step", spot->path);
    return store_discard(layer, layer_fd(layer), expose_name, err);
}

static int expose_dir(struct trees *trees, size_t root, const char *path, struct err *err)
{
    bool is_covered = false; /* a newer step has something there */

    forget_hiding(trees, path);

    for (size_t i = trees_steps(trees); i > 0; i--) {
        const struct spot spot = {.trees = trees, .root = root, .step = i - 1, .path = path};
        int dir = trees_folder(trees, root, trees_step(trees, i - 1), path);
        struct stat st;

        if (dir < 0 && errno == ENOENT)
            continue;
        if (dir >= 0) {
            if (overlaid_is_opaque(dir, NULL) && expose_opaque(&spot, dir, err))
                return -1;
        } else if (trees_stat(trees, root, trees_step(trees, i - 1), path, &st)) {
            if (errno != ENOENT)
                return err_sys(err, "looking at %s in a step", path);
        } else if (S_ISDIR(st.st_mode)) {
            return err_set(err, ERR_SYSTEM, "the folder %s of a step cannot be opened", path);
        } else if (!is_whiteout(&st) && !is_covered) {
            return err_set(
                err, ERR_CONFLICT,
                "%s, which it lies in, is no folder in the layer: do the same with that first",
                path);
        } else if (expose_whiteout(&spot, err)) {
            return -1;
        }
        is_covered = true;
    }
    return 0;
}

int upper_expose(struct trees *trees, size_t root, const char *path, struct err *err)
{
    if (!hiding_step(trees, root, path))
        return 0;
    for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
        AUTO_FREE char *dir = alloc_strn(path, (size_t)(slash - path));

        if (expose_dir(trees, root, dir, err))
            return -1;
    }
    return 0;
}

/* --- taking away, and putting back --- */

int upper_lose(struct trees *trees, size_t root, const char *path, int first, int last,
               struct err *err)
{
    const struct layer *layer = trees_layer(trees);

    for (size_t i = 0; i < trees_steps(trees); i++) {
        const int step = trees_step(trees, i);
        const char *name;
        int dir;

        if (step < first || step > last)
            continue;
        dir = trees_parent(trees, root, step, path, &name);
        if (dir < 0 && (errno == ENOENT || errno == ENOTDIR))
            continue;
        forget_hiding(trees, path);
        if (dir < 0 || sys_fault() || unlinkat(dir, name, 0)) {
            if (dir >= 0 && errno == ENOENT)
                continue;
            if (dir < 0 || errno != EISDIR)
                return err_sys(err, "removing %s from the layer", path);
            trees_folder(trees, root, step, path); /* lent: it is moved */
            dir = trees_parent(trees, root, step, path, &name);
            if (store_discard(layer, dir, name, err))
                return -1;
            trees_forget(trees);
        }
    }
    return 0;
}

static int make_folder(struct trees *trees, size_t root, int step, const char *path,
                       struct err *err)
{
    struct stat st = {.st_mode = 0755, .st_uid = geteuid(), .st_gid = getegid()};
    const char *name;
    int dir;

    trees_stat(trees, root, TREE_REAL, path, &st);
    st.st_mode = trees_real_mode(trees, root, path, st.st_mode);
    dir = trees_parent(trees, root, step, path, &name);
    if (dir < 0 || sys_fault() || mkdirat(dir, name, 0700))
        return err_sys(err, "making the folder %s in the layer", path);
    if (geteuid() == 0 && (sys_fault() || fchownat(dir, name, st.st_uid, st.st_gid, 0)))
        return err_sys(err, "making the folder %s in the layer", path);
    if (sys_fault() || fchmodat(dir, name, st.st_mode & 07777, 0))
        return err_sys(err, "making the folder %s in the layer", path);
    return 0;
}

int upper_make_parents(struct trees *trees, size_t root, int step, const char *path,
                       struct err *err)
{
    for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
        AUTO_FREE char *dir = alloc_strn(path, (size_t)(slash - path));

        if (trees_folder(trees, root, step, dir) >= 0)
            continue;
        if (errno != ENOENT)
            return err_sys(err, "the folder %s in the layer", dir);
        if (make_folder(trees, root, step, dir, err))
            return -1;
    }
    return 0;
}

int upper_whiteout(struct trees *trees, size_t root, int step, const char *path, struct err *err)
{
    const char *name;
    int dir;

    if (upper_make_parents(trees, root, step, path, err))
        return -1;
    dir = trees_parent(trees, root, step, path, &name);
    forget_hiding(trees, path);
    if (dir < 0 || (make_whiteout(trees_layer(trees), dir, name) && errno != EEXIST))
        return err_sys(err, "removing %s in the layer", path);
    return 0;
}
