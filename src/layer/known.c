/* See known.h. The file is "cordon-known 1", then for each path its root, its stamp and its text (records.h), sorted: so it
 * is read and searched without more ado. It is only believed where the stamp fits exactly; losing it costs false
 * conflicts and nothing else. */
#include "layer/known.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/str.h"
#include "layer/inside.h"
#include "layer/records.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { KNOWN_MAX = 256 << 20 };

static const char known_head[] = "cordon-known 1";
static const char known_name[] = "known";

struct known_item {
    uint64_t root;
    char *path;
    struct change_stamp stamp;
    size_t order; /* of noting, while it is sorted */
};

struct known {
    struct known_item *items; /* sorted, but for those from `sorted` on */
    size_t len;
    size_t cap;
    size_t sorted;
};

static int compare(const void *one, const void *other)
{
    const struct known_item *a = one;
    const struct known_item *b = other;

    if (a->root != b->root)
        return a->root < b->root ? -1 : 1;
    return strcmp(a->path, b->path);
}

static int compare_all(const void *one, const void *other)
{
    const size_t a = ((const struct known_item *)one)->order;
    const size_t b = ((const struct known_item *)other)->order;
    const int order = compare(one, other);

    return order ? order : a < b ? -1 : a > b;
}

static struct known_item *add(struct known *known)
{
    known->items = alloc_grow(known->items, known->len, &known->cap, sizeof *known->items);
    known->items[known->len] = (struct known_item){0};
    return &known->items[known->len++];
}

static void read_items(struct known *known, struct records *records)
{
    const char *head = record_take(records);

    if (!head || !str_eq(head, known_head))
        return;
    for (;;) {
        struct known_item item = {0};
        const char *path;

        if (!record_take_number(records, &item.root) || !record_take_stamp(records, &item.stamp))
            return;
        path = record_take(records);
        if (!path)
            return;
        item.path = alloc_str(path);
        if (known->len && compare(&known->items[known->len - 1], &item) >= 0) {
            free(item.path);
            return; /* not one of ours */
        }
        *add(known) = item;
        known->sorted = known->len;
    }
}

struct known *known_load(const struct layer *layer)
{
    struct known *known = alloc_zero(1, sizeof *known);
    AUTO(buf_done) struct buf text = {.max = KNOWN_MAX};
    struct err err;
    AUTO_CLOSE int fd = fd_open_file(layer_fd(layer), known_name, O_NOFOLLOW, &err);

    if (fd >= 0 && buf_read_fd(&text, fd, &err) == 0 && text.len) {
        struct records records = {.next = text.data, .end = text.data + text.len};

        read_items(known, &records);
    }
    return known;
}

void known_free(struct known *known)
{
    for (size_t i = 0; known && i < known->len; i++)
        free(known->items[i].path);
    if (known)
        free(known->items);
    free(known);
}

const struct change_stamp *known_find(const struct known *known, size_t root, const char *path)
{
    const struct known_item wanted = {.root = root, .path = (char *)path};
    const struct known_item *found;

    /* the newest of what was noted since is the last one */
    for (size_t i = known->len; i > known->sorted; i--)
        if (compare(&known->items[i - 1], &wanted) == 0)
            return &known->items[i - 1].stamp;
    found = known->sorted ? bsearch(&wanted, known->items, known->sorted, sizeof wanted, compare)
                          : NULL;
    return found ? &found->stamp : NULL;
}

void known_note(struct known *known, size_t root, const char *path,
                const struct change_stamp *stamp)
{
    struct known_item *item = add(known);

    item->root = root;
    item->path = alloc_str(path);
    item->stamp = *stamp;
}

/* Sorted, and of those that are equal only the one that was noted last. */
static void settle(struct known *known)
{
    size_t len = 0;

    for (size_t i = 0; i < known->len; i++)
        known->items[i].order = i;
    if (known->len)
        qsort(known->items, known->len, sizeof *known->items, compare_all);
    for (size_t i = 0; i < known->len; i++) {
        if (len && compare(&known->items[len - 1], &known->items[i]) == 0)
            free(known->items[--len].path);
        known->items[len++] = known->items[i];
    }
    known->len = known->sorted = len;
}

int known_save(struct known *known, const struct layer *layer, struct err *err)
{
    AUTO(buf_done) struct buf text = {.max = KNOWN_MAX};
    bool fits = record_put(&text, known_head);

    settle(known);
    for (size_t i = 0; i < known->len; i++)
        fits = fits && record_put_number(&text, known->items[i].root) &&
               record_put_stamp(&text, &known->items[i].stamp) &&
               record_put(&text, known->items[i].path);
    if (!fits)
        return err_set(err, ERR_LIMIT, "the layer has too many paths for its notes");
    return store_write(layer_fd(layer), known_name, &text, err);
}
