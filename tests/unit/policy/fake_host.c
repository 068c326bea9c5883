/* See fake_host.h. Lookups are linear; the hosts are small. */
#include "fake_host.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const json_t *fake_paths(const struct host_view *view)
{
    return ((const struct fake_host *)(const void *)view)->paths;
}

static bool is_word(const json_t *item, const char *word)
{
    return json_is_string(item) && str_eq(json_string_value(item), word);
}

static enum host_kind fake_item_kind(const json_t *item)
{
    if (json_is_object(item))
        return json_object_get(item, "link")    ? HOST_SYMLINK
               : json_object_get(item, "files") ? HOST_DIR
                                                : HOST_FILE;
    if (is_word(item, "file"))
        return HOST_FILE;
    return is_word(item, "other") ? HOST_OTHER : HOST_DIR;
}

static bool is_below_hidden(const json_t *paths, const char *path)
{
    const char *at;
    json_t *item;

    json_object_foreach((json_t *)paths, at, item) if (is_word(item, "hidden") &&
                                                       path_is_within(path, at) &&
                                                       !str_eq(path, at)) return true;
    return false;
}

/* "/dir/f12" in a directory of many files. */
static bool is_numbered(const json_t *paths, const char *path)
{
    AUTO_FREE char *dir = path_parent(path);
    const json_t *count = json_object_get(json_object_get(paths, dir), "files");

    return path_name(path)[0] == 'f' && atoll(path_name(path) + 1) < json_integer_value(count);
}

static int fake_kind(const struct host_view *view, const char *path, enum host_kind *ret,
                     struct err *err)
{
    const json_t *paths = fake_paths(view);
    const json_t *item = json_object_get(paths, path);
    const char *at;
    json_t *other;

    *ret = HOST_MISSING;
    if (is_below_hidden(paths, path))
        *ret = HOST_HIDDEN;
    else if (item)
        *ret = fake_item_kind(item);
    else if (is_numbered(paths, path))
        *ret = HOST_FILE;
    if (*ret == HOST_MISSING)
        json_object_foreach((json_t *)paths, at, other) if (path_is_within(at, path)) *ret =
            HOST_DIR;
    if (str_eq(path, "/"))
        *ret = HOST_DIR;
    return 0;
}

static char *fake_link(const struct host_view *view, const char *path, struct err *err)
{
    const json_t *link = json_object_get(json_object_get(fake_paths(view), path), "link");

    if (link)
        return alloc_str(json_string_value(link));
    errno = EINVAL;
    err_sys(err, "reading the symlink %s", path);
    return NULL;
}

static void fake_add(const struct host_view *view, const char *dir, char *name,
                     struct host_listing *ret)
{
    AUTO_FREE char *path = path_join(dir, name);
    enum host_kind kind;
    struct err err;

    for (size_t i = 0; i < ret->len; i++) {
        if (str_eq(ret->items[i].name, name)) {
            free(name);
            return;
        }
    }
    fake_kind(view, path, &kind, &err);
    ret->items = alloc_grow(ret->items, ret->len, &ret->cap, sizeof *ret->items);
    ret->items[ret->len++] = (struct host_item){.name = name, .kind = kind};
}

static int fake_item_compare(const void *left, const void *right)
{
    return strcmp(((const struct host_item *)left)->name, ((const struct host_item *)right)->name);
}

static void fake_list_numbered(json_int_t count, struct host_listing *ret)
{
    for (json_int_t i = 0; i < count; i++) {
        ret->items = alloc_grow(ret->items, ret->len, &ret->cap, sizeof *ret->items);
        ret->items[ret->len++] =
            (struct host_item){.name = alloc_strf("f%" JSON_INTEGER_FORMAT, i), .kind = HOST_FILE};
    }
}

static int fake_list(const struct host_view *view, const char *path, struct host_listing *ret,
                     struct err *err)
{
    const json_t *paths = fake_paths(view);
    const json_t *own = json_object_get(paths, path);
    size_t skip = path[1] ? strlen(path) + 1 : 1;
    const char *at;
    json_t *item;

    *ret = (struct host_listing){0};
    if (is_word(own, "unreadable") || is_word(own, "hidden"))
        return err_set(err, ERR_FORBIDDEN, "opening the directory %s", path);
    if (is_word(own, "broken")) {
        errno = EIO;
        return err_sys(err, "listing %s", path);
    }
    fake_list_numbered(json_integer_value(json_object_get(own, "files")), ret);
    json_object_foreach((json_t *)paths, at,
                        item) if (path_is_within(at, path) && !str_eq(at, path))
        fake_add(view, path, alloc_strn(at + skip, strcspn(at + skip, "/")), ret);
    if (ret->len)
        qsort(ret->items, ret->len, sizeof *ret->items, fake_item_compare);
    return 0;
}

static int fake_text(const struct host_view *view, const char *path, size_t max, struct buf *ret,
                     struct err *err)
{
    const json_t *item = json_object_get(fake_paths(view), path);
    const json_t *text = json_object_get(item, "text");

    if (json_object_get(item, "denied")) {
        errno = EACCES;
        err_sys(err, "opening %s", path);
        err->code = ERR_FORBIDDEN;
        return -1;
    }
    if (fake_item_kind(item) != HOST_FILE)
        return err_set(err, ERR_INVALID, "%s is not a regular file", path);
    buf_init(ret, max);
    if (text && !buf_append_str(ret, json_string_value(text))) {
        buf_done(ret);
        return err_set(err, ERR_LIMIT, "reading %s: more than %zu bytes", path, max);
    }
    return 0;
}

struct fake_host fake_host_make(json_t *paths)
{
    return (struct fake_host){
        .view = {.kind = fake_kind, .link = fake_link, .list = fake_list, .text = fake_text},
        .paths = paths,
    };
}
