/* A list of changes, and what is said of them: stamps and marks as text. How they are found is in walk.c.
 *
 * Paths may hold any bytes, JSON may not: where one is no UTF-8, the text has U+FFFD in it, and all of its bytes are
 * beside it in Base64. */
#include "layer/change.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- stamps --- */

int64_t change_ns_of(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

struct timespec change_time_of(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

void change_stamp_of(const struct stat *st, struct change_stamp *ret)
{
    *ret = (struct change_stamp){
        .dev = st->st_dev,
        .ino = st->st_ino,
        .size = (uint64_t)st->st_size,
        .ctime_ns = change_ns_of(&st->st_ctim),
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

/* One number in hexadecimal, and what ends it. */
static bool parse_number(const char **text, char end, uint64_t max, uint64_t *ret)
{
    char *rest;

    if (!strchr("0123456789abcdef", **text) || !**text)
        return false;
    errno = 0;
    *ret = strtoull(*text, &rest, 16);
    if (errno || *rest != end || *ret > max)
        return false;
    *text = end ? rest + 1 : rest;
    return true;
}

int change_stamp_parse(const char *text, struct change_stamp *ret, struct err *err)
{
    struct change_stamp stamp;
    const char *at = text;
    uint64_t ctime_ns, mode;

    if (str_eq(text, "")) {
        *ret = (struct change_stamp){0};
        return 0;
    }
    if (!parse_number(&at, '-', UINT64_MAX, &stamp.dev) ||
        !parse_number(&at, '-', UINT64_MAX, &stamp.ino) ||
        !parse_number(&at, '-', UINT64_MAX, &stamp.size) ||
        !parse_number(&at, '-', UINT64_MAX, &ctime_ns) ||
        !parse_number(&at, '\0', UINT32_MAX, &mode) || !mode)
        return err_set(err, ERR_INVALID,
                       "\"%.80s\" is no stamp: take it from a list of changes as it is", text);
    stamp.ctime_ns = (int64_t)ctime_ns;
    stamp.mode = (uint32_t)mode;
    *ret = stamp;
    return 0;
}

/* --- marks --- */

static const struct {
    enum change_mark mark;
    const char *word;
} marks[] = {
    {MARK_EXECUTABLE, "executable"}, {MARK_LEAVES, "leaves"}, {MARK_PROTECTED, "protected"},
    {MARK_RUNS_LATER, "runs-later"}, {MARK_SET_ID, "set-id"}, {MARK_SPECIAL, "special"},
    {MARK_CONFLICT, "conflict"},
};

enum { MARKS = sizeof marks / sizeof *marks };

/* --- lists --- */

static int compare_changes(const void *a, const void *b)
{
    const struct change *one = a, *other = b;
    int order;

    if (one->root != other->root)
        return one->root < other->root ? -1 : 1;
    order = path_compare(one->path, other->path);
    return order ? order : (one->kind == CHANGE_DELETED ? -1 : 1);
}

void changes_sort(struct changes *changes)
{
    if (changes->len)
        qsort(changes->items, changes->len, sizeof *changes->items, compare_changes);
}

size_t changes_place(const struct changes *changes, size_t root, const char *path)
{
    size_t low = 0, high = changes->len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct change *change = &changes->items[middle];

        if (change->root < root || (change->root == root && path_compare(change->path, path) < 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void changes_count(struct changes *changes)
{
    struct change_counts *counts = &changes->counts;

    *counts = (struct change_counts){0};
    for (size_t i = 0; i < changes->len; i++) {
        const struct change *change = &changes->items[i];

        counts->added += change->kind == CHANGE_ADDED;
        counts->modified += change->kind == CHANGE_MODIFIED;
        counts->deleted += change->kind == CHANGE_DELETED;
        counts->renamed += change->kind == CHANGE_RENAMED;
        counts->other += change->kind == CHANGE_TYPE || change->kind == CHANGE_MODE;
        counts->marked += (change->marks & MARKS_LATER) != 0;
        counts->conflicts += (change->marks & MARK_CONFLICT) != 0;
    }
}

void change_done(struct change *change)
{
    free(change->path);
    free(change->from);
}

void changes_done(struct changes *changes)
{
    for (size_t i = 0; i < changes->len; i++)
        change_done(&changes->items[i]);
    free(changes->items);
    *changes = (struct changes){0};
}

/* --- JSON --- */

static char *root_join(const struct layer *layer, size_t root, const char *path)
{
    size_t len;

    return path_join(layer_roots(layer, &len)[root].path, path);
}

char *change_path(const struct layer *layer, const struct change *change)
{
    return root_join(layer, change->root, change->path);
}

char *change_from(const struct layer *layer, const struct change *change)
{
    return change->from ? root_join(layer, change->root, change->from) : NULL;
}

static json_t *stamp_to_json(const struct change_stamp *stamp)
{
    AUTO_FREE char *text = change_stamp_format(stamp);

    return json_string(text);
}

static const char *type_word(uint32_t mode)
{
    return S_ISREG(mode)   ? "file"
           : S_ISDIR(mode) ? "directory"
           : S_ISLNK(mode) ? "link"
                           : "special";
}

json_t *change_to_json(const struct layer *layer, const struct change *change)
{
    const struct change_stamp *side = change->layer.mode ? &change->layer : &change->real;
    const char kind[] = {(char)change->kind, '\0'};
    AUTO_FREE char *path = change_path(layer, change);
    AUTO_FREE char *from = change_from(layer, change);
    json_t *object = json_object(), *words = json_array();

    json_set_path(object, "path", "pathBase64", path);
    if (from)
        json_set_path(object, "from", "fromBase64", from);
    json_object_set_new(object, "kind", json_string(kind));
    json_object_set_new(object, "type", json_string(type_word(side->mode)));
    for (size_t i = 0; i < MARKS; i++)
        if (change->marks & marks[i].mark)
            json_array_append_new(words, json_string(marks[i].word));
    json_object_set_new(object, "marks", words);
    if (change->run_by)
        json_object_set_new(object, "runBy", json_string(change->run_by));
    if (change->kind == CHANGE_RENAMED) {
        json_object_set_new(object, "edited", json_boolean(change->is_edited));
        json_object_set_new(object, "within", json_boolean(change->is_within));
    }
    json_object_set_new(object, "size", json_integer((json_int_t)side->size));
    json_object_set_new(object, "mode", json_integer(side->mode & 07777));
    json_object_set_new(object, "binary", json_boolean(change->is_binary));
    json_object_set_new(object, "step", json_integer(change->step));
    json_object_set_new(object, "stamp", stamp_to_json(&change->layer));
    json_object_set_new(object, "realStamp", stamp_to_json(&change->real));
    return object;
}

json_t *change_counts_to_json(const struct change_counts *counts)
{
    const struct {
        const char *key;
        size_t count;
    } items[] = {
        {"added", counts->added},         {"modified", counts->modified},
        {"deleted", counts->deleted},     {"renamed", counts->renamed},
        {"other", counts->other},         {"marked", counts->marked},
        {"conflicts", counts->conflicts},
    };
    json_t *object = json_object();

    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        json_object_set_new(object, items[i].key, json_integer((json_int_t)items[i].count));
    return object;
}
