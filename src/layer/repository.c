/* See repository.h. */
#include "layer/repository.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "layer/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void repository_done(struct repository *repository)
{
    free(repository->path);
    free(repository->absolute);
    auto_close(&repository->real);
    changes_done(&repository->changes);
}

const char *repository_name_in(const struct repository *repository, const struct change *change)
{
    return change->path + strlen(repository->path) + 1;
}

const struct change *repository_change(const struct repository *repository, const char *name)
{
    const struct changes *all = &repository->changes;
    AUTO_FREE char *path = path_join(repository->path, name);
    const size_t i = changes_place(all, repository->root, path);

    return i < all->len && str_eq(all->items[i].path, path) ? &all->items[i] : NULL;
}

int repository_read_real(const struct repository *repository, const char *name, size_t max,
                         struct buf *ret, struct err *err)
{
    AUTO_CLOSE int fd = walk_open(repository->real, name, O_RDONLY);
    struct stat st;

    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? err_set(err, ERR_NOT_FOUND, "%s is missing", name)
                   : err_sys(err, "%s/%s", repository->absolute, name);
    if (fstat(fd, &st))
        return err_sys(err, "%s/%s", repository->absolute, name);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_NOT_FOUND, "%s/%s is no file", repository->absolute, name);
    ret->max = max;
    return buf_read_fd(ret, fd, err);
}

int repository_read(const struct repository *repository, const char *name, size_t max,
                    struct buf *ret, struct err *err)
{
    const struct change *change = repository_change(repository, name);
    AUTO_CLOSE int fd = -1;

    if (!change)
        return repository_read_real(repository, name, max, ret, err);
    if (!S_ISREG(change->layer.mode))
        return err_set(err, ERR_NOT_FOUND, "%s is gone", name);
    fd = change_open(repository->layer, change, CHANGE_LAYER, err);
    if (fd < 0)
        return -1;
    ret->max = max;
    return buf_read_fd(ret, fd, err);
}

/* --- the repositories of a layer --- */

static bool is_git_dir(int dir)
{
    static const char *const names[] = {"objects", "refs"};
    struct stat st;

    for (size_t i = 0; i < 2; i++)
        if (fstatat(dir, names[i], &st, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(st.st_mode))
            return false;
    return fstatat(dir, "HEAD", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

/* The length of what is the git directory in a path: the longest part that is one really, from the first ".git" on; 0: it is
 * in none. `*ret`: a descriptor of it. */
static size_t git_dir_in(int root, const char *path, int *ret)
{
    const char *at = path;
    size_t found = 0;

    while (*at) {
        size_t len = strcspn(at, "/");
        const size_t end = (size_t)(at - path) + len;

        if (found || (len == 4 && strncmp(at, ".git", 4) == 0)) {
            AUTO_FREE char *dir = alloc_strn(path, end);
            AUTO_CLOSE int fd = walk_open(root, dir, O_PATH | O_DIRECTORY);

            if (fd < 0)
                break;
            if (is_git_dir(fd)) {
                auto_close(ret);
                *ret = TAKE_FD(fd);
                found = end;
            } else if (!found) {
                break;
            }
        }
        at += len + (at[len] == '/');
    }
    return path[found] ? found : 0;
}

void repositories_done(struct repositories *repositories)
{
    for (size_t i = 0; i < repositories->len; i++)
        repository_done(&repositories->items[i]);
    free(repositories->items);
}

/* The repository of that length of the path; made when it is a new one, which `real` is of. */
static struct repository *repository_of(struct repositories *list, const struct layer *layer,
                                        const struct change *change, size_t len, int *real)
{
    AUTO_FREE char *path = alloc_strn(change->path, len);
    struct repository *repository;
    size_t roots_len;

    for (size_t i = 0; i < list->len; i++)
        if (list->items[i].root == change->root && str_eq(list->items[i].path, path))
            return &list->items[i];
    list->items = alloc_grow(list->items, list->len, &list->cap, sizeof *list->items);
    repository = &list->items[list->len++];
    *repository = (struct repository){.layer = layer, .root = change->root, .real = TAKE_FD(*real)};
    repository->absolute = path_join(layer_roots(layer, &roots_len)[change->root].path, path);
    repository->path = TAKE_PTR(path);
    return repository;
}

int repositories_find(const struct layer *layer, struct repositories *ret, struct err *err)
{
    const struct change_query query = {.flags = CHANGES_OF_GIT | CHANGES_WITHOUT_RENAMES |
                                                CHANGES_WITHOUT_CONFLICTS};
    AUTO(changes_done) struct changes all = {0};
    AUTO(strv_done) struct strv ignored = {0}; /* what cannot be read is told by change_list() */
    AUTO_CLOSE int root = -1;
    size_t of = SIZE_MAX;

    if (!layer_has_git(layer))
        return 0;
    if (change_list(layer, &query, &all, &ignored, err))
        return -1;
    for (size_t i = 0; i < all.len; i++) {
        struct change *change = &all.items[i];
        AUTO_CLOSE int real = -1;
        struct changes *mine;
        size_t len;

        if (change->root != of) {
            auto_close(&root);
            of = change->root;
            root = layer_open_root(layer, of, err);
            if (root < 0)
                return -1;
        }
        len = git_dir_in(root, change->path, &real);
        if (!len)
            continue;
        mine = &repository_of(ret, layer, change, len, &real)->changes;
        mine->items = alloc_grow(mine->items, mine->len, &mine->cap, sizeof *mine->items);
        mine->items[mine->len++] = *change;
        *change = (struct change){.root = of};
    }
    return 0;
}
