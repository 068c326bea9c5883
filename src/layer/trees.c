/* See trees.h. A path below a root is given to openat2(2) as a whole, which goes through no link and to no other file system; what
 * comes out is a descriptor, and all that is done is done relative to it. So whoever swaps a folder for a link meanwhile
 * gets nothing written where the link leads.
 *
 * Paths come sorted, so that the folder of one is mostly that of the one before: the last few of each tree stay
 * open. */
#include "layer/trees.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "base/sys.h"
#include "layer/inside.h"
#include "layer/lent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { KEPT = 6 };

struct kept_folder {
    char *path; /* NULL: none */
    size_t len;
    int fd;
    uint64_t used;
};

struct tree {
    int top; /* of the root; -1: the step has nothing there */
    uint64_t uses;
    struct kept_folder kept[KEPT];
};

struct lent_real {
    size_t root;
    char *path;
    mode_t mode;
};

struct trees {
    const struct layer *layer;
    size_t roots;
    size_t steps;
    int *numbers;
    int *squashed;      /* the first step that is in it */
    struct tree *items; /* for each root: the real one, then the steps */
    struct trees_hiding hiding;
    struct lent lent;
    unsigned lends;          /* of enum trees_lending */
    struct lent_real *reals; /* that are lent */
    size_t reals_len;
    size_t reals_cap;
};

static struct tree *tree_at(struct trees *trees, size_t root, int step)
{
    size_t at = 0;

    if (root >= trees->roots)
        return NULL;
    if (step != TREE_REAL) {
        while (at < trees->steps && trees->numbers[at] != step)
            at++;
        if (at == trees->steps)
            return NULL;
        at++;
    }
    return &trees->items[root * (trees->steps + 1) + at];
}

/* What is at the path, and below it; "": all. */
static void tree_forget(struct tree *tree, const char *path)
{
    for (size_t i = 0; i < KEPT; i++) {
        struct kept_folder *kept = &tree->kept[i];

        if (!kept->path || (*path && !path_is_within(kept->path, path)))
            continue;
        close(kept->fd);
        free(kept->path);
        *kept = (struct kept_folder){0};
    }
}

struct trees_hiding *trees_hiding(struct trees *trees)
{
    return &trees->hiding;
}

void trees_forget(struct trees *trees)
{
    free(trees->hiding.parent);
    trees->hiding.parent = NULL;
    for (size_t i = 0; i < trees->roots * (trees->steps + 1); i++)
        tree_forget(&trees->items[i], "");
}

void trees_forget_below(struct trees *trees, size_t root, const char *path)
{
    struct trees_hiding *last = &trees->hiding;

    if (last->parent && last->root == root && path_is_within(last->parent, path)) {
        free(last->parent);
        last->parent = NULL;
    }
    for (size_t i = 0; i <= trees->steps; i++)
        tree_forget(&trees->items[root * (trees->steps + 1) + i], path);
}

void trees_close(struct trees *trees)
{
    struct err ignored; /* then the next holder gives them back */

    if (!trees)
        return;
    trees_give_back(trees, &ignored);
    free(trees->reals);
    for (size_t i = 0; i < trees->roots * (trees->steps + 1); i++) {
        tree_forget(&trees->items[i], "");
        auto_close(&trees->items[i].top);
    }
    free(trees->items);
    free(trees->numbers);
    free(trees->squashed);
    free(trees->hiding.parent);
    free(trees);
}

static void trees_auto(struct trees **trees)
{
    trees_close(*trees);
}

static int open_root(struct trees *trees, size_t root, struct err *err)
{
    struct tree *tree = &trees->items[root * (trees->steps + 1)];

    for (size_t i = 0; i < trees->steps; i++) {
        tree[i + 1].top = layer_open_up(trees->layer, root, trees->numbers[i], err);
        if (tree[i + 1].top < 0 && err->code != ERR_NOT_FOUND)
            return -1;
    }
    tree->top = layer_open_root(trees->layer, root, err);
    return tree->top < 0 ? -1 : 0;
}

struct trees *trees_open(const struct layer *layer, struct err *err)
{
    AUTO(trees_auto) struct trees *trees = alloc_zero(1, sizeof *trees);
    const struct layer_step *steps = layer_steps(layer, &trees->steps);
    const struct layer_root *roots = layer_roots(layer, &trees->roots);
    size_t len = trees->roots * (trees->steps + 1);

    trees->layer = layer;
    trees->lent = (struct lent){layer, -1};
    trees->numbers = alloc_zero(trees->steps + 1, sizeof *trees->numbers);
    trees->squashed = alloc_zero(trees->steps + 1, sizeof *trees->squashed);
    trees->items = alloc_zero(len + 1, sizeof *trees->items);
    for (size_t i = 0; i < trees->steps; i++) {
        trees->numbers[i] = steps[i].number;
        trees->squashed[i] = steps[i].squashed_from ? steps[i].squashed_from : steps[i].number;
    }
    for (size_t i = 0; i < len; i++)
        trees->items[i].top = -1;
    for (size_t i = 0; i < trees->roots; i++)
        if (!roots[i].is_direct && open_root(trees, i, err))
            return NULL;
    return TAKE_PTR(trees);
}

const struct layer *trees_layer(const struct trees *trees)
{
    return trees->layer;
}

size_t trees_steps(const struct trees *trees)
{
    return trees->steps;
}

int trees_step(const struct trees *trees, size_t i)
{
    return trees->numbers[i];
}

int trees_step_now(const struct trees *trees, int number)
{
    for (size_t i = 0; i < trees->steps; i++)
        if (number >= trees->squashed[i] && number <= trees->numbers[i])
            return trees->numbers[i];
    return trees->steps ? trees->numbers[trees->steps - 1] : 0;
}

/* --- folders --- */

static int open_below(int top, const char *path)
{
    const struct sys_open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
        .resolve = SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS |
                   SYS_RESOLVE_NO_XDEV,
    };

    return sys_openat2(top, path, &how);
}

/* Where it cannot be, what is done in it fails, and says so. */
static void lend(struct trees *trees, const struct tree *tree, const char *path, int fd)
{
    const size_t index = (size_t)(tree - trees->items);
    const size_t root = index / (trees->steps + 1), at = index % (trees->steps + 1);
    AUTO_FREE char *whole = NULL;
    char up[STORE_NAME_MAX];
    struct err ignored;
    struct stat st;
    size_t len;

    if (!(trees->lends & (at ? LEND_STEPS : LEND_REAL)) || fstat(fd, &st) ||
        (st.st_mode & 0700) == 0700)
        return;
    if (at)
        store_step_dir(root, trees->numbers[at - 1], "up", up);
    whole = path_join(at ? up : layer_roots(trees->layer, &len)[root].path, path);
    if (lent_take(&trees->lent, fd, whole, st.st_mode, &ignored) || at)
        return;
    trees->reals =
        alloc_grow(trees->reals, trees->reals_len, &trees->reals_cap, sizeof *trees->reals);
    trees->reals[trees->reals_len++] =
        (struct lent_real){.root = root, .path = alloc_str(path), .mode = st.st_mode};
}

static int folder_of(struct trees *trees, struct tree *tree, const char *path, size_t len)
{
    struct kept_folder *oldest;
    AUTO_FREE char *text = NULL;
    int fd;

    if (!tree || tree->top < 0) {
        errno = ENOENT;
        return -1;
    }
    if (!len)
        return tree->top;
    oldest = &tree->kept[0];
    for (size_t i = 0; i < KEPT; i++) {
        struct kept_folder *kept = &tree->kept[i];

        if (kept->path && kept->len == len && memcmp(kept->path, path, len) == 0) {
            kept->used = ++tree->uses;
            return kept->fd;
        }
        if (kept->used < oldest->used)
            oldest = kept;
    }
    text = alloc_strn(path, len);
    fd = open_below(tree->top, text);
    if (fd < 0)
        return -1;
    lend(trees, tree, text, fd);
    if (oldest->path)
        close(oldest->fd);
    free(oldest->path);
    *oldest =
        (struct kept_folder){.path = TAKE_PTR(text), .len = len, .fd = fd, .used = ++tree->uses};
    return fd;
}

int trees_folder(struct trees *trees, size_t root, int step, const char *path)
{
    return folder_of(trees, tree_at(trees, root, step), path, strlen(path));
}

int trees_parent(struct trees *trees, size_t root, int step, const char *path,
                 const char **ret_name)
{
    const char *slash = strrchr(path, '/');

    *ret_name = slash ? slash + 1 : path;
    return folder_of(trees, tree_at(trees, root, step), path, slash ? (size_t)(slash - path) : 0);
}

int trees_stat(struct trees *trees, size_t root, int step, const char *path, struct stat *ret)
{
    const char *name;
    int dir;

    if (!*path) {
        dir = trees_folder(trees, root, step, "");
        return dir < 0 || sys_fault() ? -1 : fstat(dir, ret);
    }
    dir = trees_parent(trees, root, step, path, &name);
    return dir < 0 || sys_fault() ? -1 : fstatat(dir, name, ret, AT_SYMLINK_NOFOLLOW);
}

/* --- modes --- */

void trees_lend(struct trees *trees, unsigned what)
{
    if (what != trees->lends)
        trees_forget(trees);
    trees->lends = what;
    for (size_t i = 0; i < trees->roots * (trees->steps + 1); i++)
        if (trees->items[i].top >= 0)
            lend(trees, &trees->items[i], "", trees->items[i].top);
}

int trees_give_back(struct trees *trees, struct err *err)
{
    trees->lends = 0;
    for (size_t i = 0; i < trees->reals_len; i++)
        free(trees->reals[i].path);
    trees->reals_len = 0;
    return trees->lent.notes < 0 ? 0 : lent_return(&trees->lent, err);
}

/* It was opened just before: those are looked through first. */
mode_t trees_real_mode(const struct trees *trees, size_t root, const char *path, mode_t mode)
{
    for (size_t i = (mode & 0700) == 0700 ? trees->reals_len : 0; i > 0; i--)
        if (trees->reals[i - 1].root == root && str_eq(trees->reals[i - 1].path, path))
            return trees->reals[i - 1].mode;
    return mode;
}

bool is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}
