/* See tree.h. */
#include "tree.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "patch/apply.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* --- in memory --- */

static bool is_dir(const json_t *tree, const char *path)
{
    AUTO_FREE char *start = alloc_strf("%s/", path);
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)tree, key, value) if (str_starts(key, start)) return true;
    return false;
}

/* A file where the path needs a directory; NULL: none. */
static char *find_file_above(const json_t *tree, const char *path)
{
    AUTO_FREE char *part = alloc_str(path);

    for (char *slash; (slash = strrchr(part, '/'));) {
        *slash = '\0';
        if (json_object_get(tree, part))
            return TAKE_PTR(part);
    }
    return NULL;
}

static int tree_source_read(void *data, const char *path, size_t max, struct content *ret,
                            struct err *err)
{
    const json_t *text = json_object_get(data, path);
    AUTO_FREE char *above = find_file_above(data, path);

    *ret = (struct content){.text = NULL};
    if (above)
        return err_set(err, ERR_INVALID, "%s is a file and not a directory", above);
    if (is_dir(data, path))
        return err_set(err, ERR_INVALID, "%s is a directory; a patch is about files", path);
    if (!text)
        return 0;
    ret->len = json_string_length(text);
    if (ret->len > max)
        return err_set(err, ERR_LIMIT, "%s is too large", path);
    ret->text = alloc_zero(ret->len + 1, 1);
    memcpy(ret->text, json_string_value(text), ret->len);
    return 0;
}

struct source tree_source(json_t *tree)
{
    return (struct source){.data = tree, .read = tree_source_read};
}

json_t *tree_changed(const json_t *tree, const struct changes *changes)
{
    json_t *after = json_copy((json_t *)tree);

    for (size_t i = 0; i < changes->len; i++) {
        const struct change *change = changes->items[i];

        if (change->after.text)
            json_object_set_new(after, change->path,
                                json_stringn(change->after.text, change->after.len));
        else
            json_object_del(after, change->path);
    }
    return after;
}

/* --- on the disk --- */

static void make_parents(const char *path)
{
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        AUTO_FREE char *part = alloc_strn(path, (size_t)(slash - path));

        mkdir(part, 0777);
    }
}

void tree_put(const char *dir, const char *path, const char *text)
{
    AUTO_FREE char *whole = path_join(dir, path);
    AUTO_CLOSE int fd = -1;
    struct err err;

    make_parents(whole);
    fd = open(whole, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 || fd_write_all(fd, text, strlen(text), &err))
        fail_msg("%s cannot be written", whole);
}

char *tree_make(const json_t *tree)
{
    char *dir = alloc_str("/tmp/cordon-patch-test-XXXXXX");
    const char *path;
    json_t *text;

    if (!mkdtemp(dir))
        fail_msg("no folder in /tmp");
    json_object_foreach((json_t *)tree, path, text) tree_put(dir, path, json_string_value(text));
    return dir;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

void tree_remove(char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(path);
}

static json_t *read_link(const char *path)
{
    char target[PATH_MAX] = "";

    assert_true(readlink(path, target, sizeof target - 1) >= 0);
    return json_pack("{s:s}", "link", target);
}

static json_t *read_thing(const char *path, mode_t mode)
{
    AUTO(buf_done) struct buf text = {0};
    struct err err;

    if (S_ISLNK(mode))
        return read_link(path);
    if (S_ISDIR(mode))
        return json_object();
    if (!S_ISREG(mode))
        return json_null();
    if (fd_read_file(path, 1 << 24, &text, &err))
        fail_msg("%s", err.msg);
    return json_stringn(text.len ? text.data : "", text.len);
}

static struct {
    json_t *tree;
    size_t skip; /* of each path: the directory and a slash */
} reading;

static int read_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    AUTO_FREE char *parent = path_parent(path);

    (void)kind;
    if (ftw->level == 0)
        return 0;
    if (ftw->level > 1)
        json_object_del(reading.tree, parent + reading.skip); /* not an empty directory, then */
    json_object_set_new(reading.tree, path + reading.skip, read_thing(path, st->st_mode));
    return 0;
}

json_t *tree_read(const char *dir)
{
    reading.tree = json_object();
    reading.skip = strlen(dir) + 1;
    if (nftw(dir, read_one, 16, FTW_PHYS))
        fail_msg("%s cannot be read", dir);
    return reading.tree;
}

int tree_patch(const char *dir, const char *text, struct err *err)
{
    AUTO(patch_auto) struct patch *patch = patch_parse(text, strlen(text), err);
    AUTO(patch_changes_done) struct changes changes = {.items = NULL};
    AUTO(patch_dir_done) struct patch_dir place = {.fd = -1};
    AUTO(recovery_done) struct recovery recovery = {0};
    AUTO(apply_end) struct apply apply = {.ledger = {.fd = -1}};
    struct source source = patch_dir_source(&place);

    if (!patch || patch_dir_open(dir, &place, err) || apply_begin(&place, &recovery, &apply, err) ||
        changes_compute(patch, &source, place.path, &changes, err))
        return -1;
    return apply_commit(&apply, &changes, err);
}
