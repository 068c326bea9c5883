/* See rename.h. Three ways to find them, from the surest on; whoever is found is out of the game:
 *
 *   - of the same size and with the same mtime, which a rename keeps: their bytes are compared;
 *   - of the same size, and with the same hash: the same;
 *   - texts (similar.c): half of the lines of the larger one are in the other, too.
 *
 * In each the same name is better than another. Nothing is compared with everything: pairs come from sorting. What
 * is read is bounded (READ_MAX), so that a layer of large files is listed as fast as any; what is beyond stays an A and a D.
 *
 * A folder that is gone, of which every file is the same in a folder that is new, is a rename of its own; what is in it
 * is in the list, too, and says that the folder says it (`is_within`). */
#include "layer/rename.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "layer/marks.h"
#include "layer/side.h"
#include "layer/similar.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64 * 1024 };

#define READ_MAX (UINT64_C(512) << 20)
#define KEPT_MAX ((size_t)16 << 20)

struct file {
    size_t at; /* in the list */
    size_t root;
    const char *name;
    bool is_added;
    bool is_read; /* the hash is there */
    bool is_kept; /* and the bytes, too */
    uint64_t size;
    int64_t mtime_ns;
    uint64_t hash;
    size_t kept_at;
};

struct pairing {
    struct changes *changes;
    const struct strv *protected_names;
    struct sides sides;
    struct file *files; /* that have no other yet */
    size_t len;
    uint64_t left; /* of READ_MAX */
    char *block[2];
    struct buf kept;        /* bytes of small files, for they are likely to be compared */
    struct similar similar; /* texts of up to a block */
    size_t *other; /* by place in the list: of an A where its D is, and the other way; SIZE_MAX */
};

/* --- two become one --- */

static void pair(struct pairing *pairing, size_t added, size_t gone, bool is_edited)
{
    struct change *change = &pairing->changes->items[added];
    struct change *old = &pairing->changes->items[gone];

    pairing->other[added] = gone;
    pairing->other[gone] = added;
    change->kind = CHANGE_RENAMED;
    change->from = alloc_str(old->path);
    change->is_edited = is_edited;
    change->real = old->real;
    change->real_mtime_ns = old->real_mtime_ns;
    change->base_step = old->base_step;
    /* that a copy has no real one is no conflict: that one had another name */
    change->marks &= ~(unsigned)MARK_CONFLICT;
    change->marks |= old->marks & MARK_CONFLICT;
    if (old->first_step < change->first_step)
        change->first_step = old->first_step;
    marks_of(change, NULL,
             marks_protected(change->path, pairing->protected_names) ||
                 marks_protected(change->from, pairing->protected_names));
}

static bool is_paired(const struct pairing *pairing, const struct file *file)
{
    return pairing->other[file->at] != SIZE_MAX;
}

static int file_open(struct pairing *pairing, const struct file *file)
{
    struct err err;

    if (file->size > pairing->left)
        return -1;
    pairing->left -= file->size;
    return sides_open(&pairing->sides, &pairing->changes->items[file->at],
                      file->is_added ? CHANGE_LAYER : CHANGE_REAL, &err);
}

static bool is_same_read(struct pairing *pairing, const struct file *one, const struct file *other)
{
    AUTO_CLOSE int fd = file_open(pairing, one);
    AUTO_CLOSE int other_fd = fd < 0 ? -1 : file_open(pairing, other);

    for (uint64_t left = one->size; other_fd >= 0 && left;) {
        size_t want = left < BLOCK ? (size_t)left : BLOCK;
        ssize_t len = fd_read_block(fd, pairing->block[0], want);

        if (len < 0 || len != fd_read_block(other_fd, pairing->block[1], want) ||
            memcmp(pairing->block[0], pairing->block[1], (size_t)len) != 0)
            return false;
        left -= want;
    }
    return other_fd >= 0;
}

/* Both are of one size. */
static bool is_same(struct pairing *pairing, const struct file *one, const struct file *other)
{
    const char *kept = pairing->kept.data;

    return one->is_kept && other->is_kept
               ? memcmp(kept + one->kept_at, kept + other->kept_at, one->size) == 0
               : is_same_read(pairing, one, other);
}

/* Eight bytes at a time, and what is left. Who collides on purpose gains that their files are not paired: the bytes of
 * those that are were compared. */
static uint64_t add_hash(uint64_t hash, const char *data, size_t len)
{
    uint64_t word;

    for (; len; data += sizeof word, len -= sizeof word) {
        word = len;
        memcpy(&word, data, len < sizeof word ? len : sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
        if (len < sizeof word)
            break;
    }
    return hash;
}

/* Reads the file once: for its hash, if one of the other kind has its size, and for its lines. */
static void read_file(struct pairing *pairing, struct file *file, bool wants_hash)
{
    bool wants_lines = file->size <= BLOCK && similar_wants(&pairing->similar, file->size);
    AUTO_CLOSE int fd = wants_hash || wants_lines ? file_open(pairing, file) : -1;
    uint64_t left = file->size;
    bool is_whole = fd >= 0;

    while (left && is_whole && (wants_hash || wants_lines)) {
        size_t want = left < BLOCK ? (size_t)left : BLOCK;

        is_whole = fd_read_block(fd, pairing->block[0], want) == (ssize_t)want;
        if (is_whole && wants_hash)
            file->hash = add_hash(file->hash, pairing->block[0], want);
        left -= want;
    }
    file->is_read = is_whole && wants_hash;
    file->kept_at = pairing->kept.len;
    file->is_kept = file->is_read && file->size <= BLOCK &&
                    buf_append(&pairing->kept, pairing->block[0], (size_t)file->size);
    if (is_whole && wants_lines)
        similar_add(&pairing->similar, pairing->block[0], (size_t)file->size,
                    &(struct similar_file){file->at, file->root, file->name, file->is_added});
}

/* --- the same bytes --- */

static int compare_sizes(const struct file *one, const struct file *other)
{
    if (one->root != other->root)
        return one->root < other->root ? -1 : 1;
    return one->size == other->size ? 0 : one->size < other->size ? -1 : 1;
}

static int compare_names(const struct file *one, const struct file *other)
{
    int order = strcmp(one->name, other->name);

    if (order)
        return order;
    return one->at == other->at ? 0 : one->at < other->at ? -1 : 1;
}

static int by_mtime(const void *a, const void *b)
{
    const struct file *one = a, *other = b;
    int order = compare_sizes(one, other);

    if (!order && one->mtime_ns != other->mtime_ns)
        return one->mtime_ns < other->mtime_ns ? -1 : 1;
    return order ? order : compare_names(one, other);
}

static int by_hash(const void *a, const void *b)
{
    const struct file *one = a, *other = b;
    int order = compare_sizes(one, other);

    if (!order && one->is_read != other->is_read)
        order = one->is_read ? -1 : 1;
    if (!order && one->hash != other->hash)
        order = one->hash < other->hash ? -1 : 1;
    return order ? order : compare_names(one, other);
}

static void try_pair(struct pairing *pairing, struct file *one, struct file *other)
{
    if (!is_same(pairing, one, other))
        return;
    if (one->is_added)
        pair(pairing, one->at, other->at, false);
    else
        pair(pairing, other->at, one->at, false);
}

/* Of files that are alike as far as is known, sorted by name: those of one name first, then each with the next one of
 * the other kind. */
static void pair_run(struct pairing *pairing, struct file *files, size_t len)
{
    struct file *waiting = NULL;
    size_t next[2] = {0, 0};

    for (size_t i = 0; i < len; i++) {
        struct file *file = &files[i];

        if (waiting && waiting->is_added != file->is_added && str_eq(waiting->name, file->name)) {
            try_pair(pairing, waiting, file);
            waiting = NULL;
        } else {
            waiting = file;
        }
    }
    for (;;) {
        for (int added = 0; added < 2; added++)
            while (next[added] < len && (files[next[added]].is_added != (added == 1) ||
                                         is_paired(pairing, &files[next[added]])))
                next[added]++;
        if (next[0] == len || next[1] == len)
            return;
        try_pair(pairing, &files[next[0]++], &files[next[1]++]);
    }
}

/* Of `files` the end of those that are alike; `*ret_both`: there are some of each kind among them. */
static size_t run_end(const struct file *files, size_t i, size_t len,
                      bool (*is_alike)(const struct file *, const struct file *), bool *ret_both)
{
    bool has[2] = {false, false};
    size_t end = i;

    for (; end < len && is_alike(&files[i], &files[end]); end++)
        has[files[end].is_added] = true;
    *ret_both = has[0] && has[1];
    return end;
}

static bool alike_size(const struct file *one, const struct file *other)
{
    return compare_sizes(one, other) == 0;
}

static bool alike_mtime(const struct file *one, const struct file *other)
{
    return alike_size(one, other) && one->mtime_ns == other->mtime_ns;
}

static bool alike_hash(const struct file *one, const struct file *other)
{
    return alike_size(one, other) && one->is_read && other->is_read && one->hash == other->hash;
}

static void pair_runs(struct pairing *pairing,
                      bool (*is_alike)(const struct file *, const struct file *))
{
    bool has_both;

    for (size_t i = 0, end; i < pairing->len; i = end) {
        end = run_end(pairing->files, i, pairing->len, is_alike, &has_both);
        end += end == i; /* one that could not be read is not even like itself */
        if (has_both)
            pair_run(pairing, pairing->files + i, end - i);
    }
}

static void forget_paired(struct pairing *pairing)
{
    size_t len = 0;

    for (size_t i = 0; i < pairing->len; i++)
        if (!is_paired(pairing, &pairing->files[i]))
            pairing->files[len++] = pairing->files[i];
    pairing->len = len;
}

static void sort_files(struct pairing *pairing, int (*compare)(const void *, const void *))
{
    if (pairing->len)
        qsort(pairing->files, pairing->len, sizeof *pairing->files, compare);
}

static bool has_both_kinds(const struct pairing *pairing)
{
    size_t added = 0;

    for (size_t i = 0; i < pairing->len; i++)
        added += pairing->files[i].is_added;
    return added && added < pairing->len;
}

static void pair_same(struct pairing *pairing)
{
    bool has_both;

    sort_files(pairing, by_mtime);
    pair_runs(pairing, alike_mtime);
    forget_paired(pairing);
    for (size_t i = has_both_kinds(pairing) ? 0 : pairing->len, end; i < pairing->len; i = end) {
        end = run_end(pairing->files, i, pairing->len, alike_size, &has_both);
        for (size_t at = i; at < end; at++)
            read_file(pairing, &pairing->files[at], has_both);
    }
    sort_files(pairing, by_hash);
    pair_runs(pairing, alike_hash);
    forget_paired(pairing);
}

/* --- much the same lines --- */

static void add_large(struct pairing *pairing, const struct file *file)
{
    bool is_wanted = similar_wants(&pairing->similar, file->size);
    AUTO_CLOSE int fd = is_wanted ? file_open(pairing, file) : -1;
    AUTO_FREE char *text = fd >= 0 ? alloc_zero(1, file->size) : NULL;

    if (text && fd_read_block(fd, text, file->size) == (ssize_t)file->size)
        similar_add(&pairing->similar, text, file->size,
                    &(struct similar_file){file->at, file->root, file->name, file->is_added});
}

/* Those that are no more to be paired drop out; what is larger than a block is read only now. */
static void pair_similar(struct pairing *pairing)
{
    struct similar *similar = &pairing->similar;

    for (size_t i = 0; i < similar->texts_len; i++)
        similar->texts[i].is_taken = pairing->other[similar->texts[i].file.at] != SIZE_MAX;
    for (size_t i = has_both_kinds(pairing) ? 0 : pairing->len; i < pairing->len; i++)
        if (pairing->files[i].size > BLOCK)
            add_large(pairing, &pairing->files[i]);
    similar_find(similar);
    for (size_t i = 0; i < similar->pairs_len; i++)
        pair(pairing, similar->pairs[i].added, similar->pairs[i].gone, true);
}

/* --- folders --- */

/* The place in the list of a kind of change, which is sorted by path; SIZE_MAX. */
static size_t find(const struct changes *changes, size_t root, const char *path,
                   enum change_kind kind)
{
    for (size_t i = changes_place(changes, root, path);
         i < changes->len && changes->items[i].root == root && str_eq(changes->items[i].path, path);
         i++)
        if (changes->items[i].kind == kind)
            return i;
    return SIZE_MAX;
}

static bool is_gone_dir(const struct change *change)
{
    return change->kind == CHANGE_DELETED && S_ISDIR(change->real.mode);
}

/* What becomes of `path`, which lies in `dir`, when that is called `to`. */
static char *moved_path(const char *path, const char *dir, const char *to)
{
    return alloc_strf("%s%s", to, path + strlen(dir));
}

/* Where the directory at `at` would be, judged by the first of its files: in `*ret_end` what is behind all that is
 * in it. NULL: nowhere. */
static char *target_of(const struct pairing *pairing, size_t at, size_t *left, size_t *ret_end)
{
    const struct changes *changes = pairing->changes;
    const struct change *dir = &changes->items[at];
    AUTO_FREE char *to = NULL;
    size_t end = at + 1;

    for (; end < changes->len && changes->items[end].root == dir->root &&
           path_is_within(changes->items[end].path, dir->path);
         end++) {
        const struct change *item = &changes->items[end];
        const char *below = item->path + strlen(dir->path);
        const struct change *now =
            pairing->other[end] != SIZE_MAX ? &changes->items[pairing->other[end]] : NULL;

        if (!*left)
            return NULL;
        --*left;
        if (is_gone_dir(item))
            continue;
        if (!now || item->kind != CHANGE_DELETED || now->is_edited || !str_ends(now->path, below))
            return NULL;
        if (!to)
            to = alloc_strn(now->path, strlen(now->path) - strlen(below));
        else if (strlen(now->path) != strlen(to) + strlen(below) || !str_starts(now->path, to))
            return NULL;
    }
    *ret_end = end;
    return TAKE_PTR(to);
}

/* The directory itself, and what is in it. */
static void pair_folder(struct pairing *pairing, size_t at, size_t end, const char *to)
{
    const struct changes *changes = pairing->changes;
    const char *dir = changes->items[at].path;

    for (size_t i = at; i < end; i++) {
        size_t other = pairing->other[i];

        if (other == SIZE_MAX) {
            AUTO_FREE char *path = moved_path(changes->items[i].path, dir, to);

            other = find(changes, changes->items[at].root, path, CHANGE_ADDED);
            if (other == SIZE_MAX || !S_ISDIR(changes->items[other].layer.mode))
                continue;
            pair(pairing, other, i, false);
        }
        changes->items[other].is_within = i > at;
    }
}

static void pair_folders(struct pairing *pairing)
{
    const struct changes *changes = pairing->changes;
    size_t left = 64 * changes->len; /* looks into folders in folders, none of which is one */

    for (size_t i = 0, end; i < changes->len; i++) {
        const struct change *dir = &changes->items[i];
        AUTO_FREE char *to = is_gone_dir(dir) ? target_of(pairing, i, &left, &end) : NULL;
        size_t other = to ? find(changes, dir->root, to, CHANGE_ADDED) : SIZE_MAX;

        if (other == SIZE_MAX || !S_ISDIR(changes->items[other].layer.mode))
            continue;
        pair_folder(pairing, i, end, to);
        i = end - 1;
    }
}

/* --- all of it --- */

static void pairing_done(struct pairing *pairing)
{
    sides_done(&pairing->sides);
    similar_done(&pairing->similar);
    buf_done(&pairing->kept);
    free(pairing->files);
    free(pairing->other);
    free(pairing->block[0]);
    free(pairing->block[1]);
}

static void collect(struct pairing *pairing)
{
    const struct changes *changes = pairing->changes;

    for (size_t i = 0; i < changes->len; i++) {
        const struct change *change = &changes->items[i];
        bool is_added = change->kind == CHANGE_ADDED;
        const struct change_stamp *side = is_added ? &change->layer : &change->real;

        pairing->other[i] = SIZE_MAX;
        if ((is_added || change->kind == CHANGE_DELETED) && S_ISREG(side->mode) && side->size)
            pairing->files[pairing->len++] = (struct file){
                .at = i,
                .root = change->root,
                .name = path_name(change->path),
                .is_added = is_added,
                .size = side->size,
                .mtime_ns = is_added ? change->layer_mtime_ns : change->real_mtime_ns,
            };
    }
}

static void remove_gone(struct pairing *pairing)
{
    struct changes *changes = pairing->changes;
    size_t len = 0;

    for (size_t i = 0; i < changes->len; i++)
        if (changes->items[i].kind == CHANGE_DELETED && pairing->other[i] != SIZE_MAX)
            change_done(&changes->items[i]);
        else
            changes->items[len++] = changes->items[i];
    changes->len = len;
}

void changes_pair(const struct layer *layer, const struct strv *protected_names,
                  struct changes *changes)
{
    AUTO(pairing_done)
    struct pairing pairing = {
        .changes = changes,
        .protected_names = protected_names,
        .sides = {.layer = layer},
        .left = READ_MAX,
        .kept = {.max = KEPT_MAX},
        .files = alloc_zero(changes->len + 1, sizeof *pairing.files),
        .other = alloc_zero(changes->len + 1, sizeof *pairing.other),
        .block = {alloc_zero(1, BLOCK), alloc_zero(1, BLOCK)},
    };

    collect(&pairing);
    pair_same(&pairing);
    pair_similar(&pairing);
    pair_folders(&pairing);
    remove_gone(&pairing);
}
