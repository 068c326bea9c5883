/* See diff_trees.h. Just what changed is copied, into a folder that only the person can enter: a/ is what is real, b/ what the
 * layer has. git compares them as it does any two folders (--no-index), and looks for no repository: above us is a folder in which
 * others write ($TMPDIR), and what they put there as one, or a command did, would say what git runs. Everything is taken away at the end by the list of what was
 * made, and nothing else is. A command can make a file of a terabyte in no time: of what is large git gets the size. */
#include "cli/diff_trees.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 1 << 16, LINK_MAX_BYTES = 4096, FILE_MAX = 64 << 20, ALL_MAX = 1 << 30 };

struct trees {
    char *path;
    int fd;
    struct strv made; /* relative to it, parents first */
    uint64_t bytes;   /* that were copied */
    bool has_one_root;
};

static void trees_done(struct trees *trees)
{
    for (size_t i = trees->made.len; i-- > 0;)
        if (unlinkat(trees->fd, trees->made.items[i], 0))
            unlinkat(trees->fd, trees->made.items[i], AT_REMOVEDIR);
    if (trees->fd >= 0)
        close(trees->fd);
    if (trees->path)
        rmdir(trees->path);
    free(trees->path);
    strv_done(&trees->made);
}

static int trees_init(struct trees *trees, struct err *err)
{
    const char *tmp = getenv("TMPDIR");

    trees->path = alloc_strf("%s/cordon-diff-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
    if (!mkdtemp(trees->path)) {
        free(TAKE_PTR(trees->path));
        return err_sys(err, "making a folder in %s", tmp && *tmp == '/' ? tmp : "/tmp");
    }
    trees->fd = open(trees->path, O_DIRECTORY | O_CLOEXEC);
    return trees->fd < 0 ? err_sys(err, "%s", trees->path) : 0;
}

static int make_dir(struct trees *trees, const char *path, struct err *err)
{
    if (mkdirat(trees->fd, path, 0700) == 0)
        strv_push(&trees->made, path);
    else if (errno != EEXIST)
        return err_sys(err, "making %.120s", path);
    return 0;
}

static int make_parents(struct trees *trees, const char *path, struct err *err)
{
    for (const char *at = strchr(path, '/'); at; at = strchr(at + 1, '/')) {
        AUTO_FREE char *dir = alloc_strn(path, (size_t)(at - path));

        if (make_dir(trees, dir, err))
            return -1;
    }
    return 0;
}

static int copy_link(struct trees *trees, const char *path, int from, struct err *err)
{
    char text[LINK_MAX_BYTES];
    ssize_t len = readlinkat(from, "", text, sizeof text - 1);

    if (len < 0)
        return err_sys(err, "reading the link %.120s", path);
    text[len] = '\0';
    if (symlinkat(text, trees->fd, path))
        return err_sys(err, "making %.120s", path);
    strv_push(&trees->made, path);
    return 0;
}

/* What is no larger than it was listed: it may grow. */
static int copy_bytes(int from, int to, uint64_t left, struct err *err)
{
    AUTO_FREE char *block = alloc_zero(1, BLOCK);
    ssize_t len = 1;

    for (; left && len > 0; left -= (uint64_t)len) {
        len = fd_read_block(from, block, left < BLOCK ? (size_t)left : BLOCK);
        if (len < 0)
            return err_sys(err, "reading");
        if (fd_write_all(to, block, (size_t)len, err))
            return -1;
    }
    return 0;
}

/* In place of the contents; no two stamps are the same. */
static int tell_large(int to, const char *path, const struct change_stamp *stamp, struct err *err)
{
    AUTO_FREE char *stamped = change_stamp_format(stamp);
    AUTO_FREE char *text = alloc_strf("(%llu bytes, which are too many for git; as of %s)\n",
                                      (unsigned long long)stamp->size, stamped);

    console_say("%s is too large for git: its contents are not compared", path);
    return fd_write_all(to, text, strlen(text), err);
}

static int copy_file(struct trees *trees, const char *path, int from,
                     const struct change_stamp *stamp, struct err *err)
{
    AUTO_CLOSE int to =
        openat(trees->fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
               stamp->mode & 0100 ? 0700 : 0600);
    const bool is_large = stamp->size > FILE_MAX || trees->bytes > ALL_MAX;

    if (to < 0)
        return err_sys(err, "making %.120s", path);
    strv_push(&trees->made, path);
    trees->bytes += is_large ? 0 : stamp->size;
    if (is_large ? tell_large(to, path, stamp, err) : copy_bytes(from, to, stamp->size, err))
        return err_wrap(err, "%.120s", path);
    return 0;
}

/* What is neither file nor link has nothing that can be compared. */
static int add_side(struct trees *trees, const struct layer *layer, const struct change *change,
                    enum change_side side, struct err *err)
{
    const struct change_stamp *stamp = side == CHANGE_LAYER ? &change->layer : &change->real;
    AUTO_FREE char *whole = change_path(layer, change);
    AUTO_FREE char *path =
        alloc_strf("%s%s%s", side == CHANGE_LAYER ? "b" : "a", trees->has_one_root ? "/" : "",
                   trees->has_one_root ? change->path : whole);
    AUTO_CLOSE int from = -1;

    if (!S_ISREG(stamp->mode) && !S_ISLNK(stamp->mode))
        return 0;
    from = change_open(layer, change, side, err);
    if (from < 0 || make_parents(trees, path, err))
        return -1;
    return S_ISLNK(stamp->mode) ? copy_link(trees, path, from, err)
                                : copy_file(trees, path, from, stamp, err);
}

static bool tells_by_status(char *const *options)
{
    for (; *options; options++)
        if (str_eq(*options, "--exit-code") || str_eq(*options, "--quiet"))
            return true;
    return false;
}

/* All changes are below one root: then names begin there. */
static bool has_one_root(const struct changes *changes)
{
    for (size_t i = 1; i < changes->len; i++)
        if (changes->items[i].root != changes->items[0].root)
            return false;
    return true;
}

static int run_git(const struct trees *trees, char *const *options)
{
    AUTO(strv_done) struct strv argv = {0};
    int status;

    for (const char *const *name =
             (const char *const[]){"GIT_WORK_TREE", "GIT_PREFIX", "GIT_INDEX_FILE", NULL};
         *name; name++)
        unsetenv(*name);
    setenv("GIT_DIR", "/dev/null", 1);
    strv_push_all(&argv, (char *const[]){(char *)"git", (char *)"diff", (char *)"--no-index",
                                         (char *)"--no-prefix", NULL});
    strv_push_all(&argv, options);
    strv_push_all(&argv, (char *const[]){(char *)"--", (char *)"a", (char *)"b", NULL});
    status = program_wait((const char *const *)strv_view(&argv), trees->path, -1);
    if (status == 127)
        return console_failf("there is no git here; without options behind -- the diff is ours");
    if (status == 1 && !tells_by_status(options))
        return EXIT_OK;
    return status > 1 ? EXIT_FAILED : status;
}

int diff_by_git(const struct layer *layer, const struct changes *changes, char *const *options)
{
    AUTO(trees_done) struct trees trees = {.fd = -1};
    struct err err;

    if (trees_init(&trees, &err) || make_dir(&trees, "a", &err) || make_dir(&trees, "b", &err))
        return console_fail(&err);
    trees.has_one_root = has_one_root(changes);
    for (size_t i = 0; i < changes->len; i++) {
        const struct change *change = &changes->items[i];

        if ((change->kind != CHANGE_ADDED && add_side(&trees, layer, change, CHANGE_REAL, &err)) ||
            (change->kind != CHANGE_DELETED && add_side(&trees, layer, change, CHANGE_LAYER, &err)))
            console_say("%s", err.msg);
    }
    return run_git(&trees, options);
}
