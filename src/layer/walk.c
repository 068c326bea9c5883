/* See walk.h. One directory after the other, from a stack of those to come: each is opened by its path below the root,
 * in all steps that have it and in the real files, so that however deep they lie there is no recursion, and few
 * descriptors are open. What is in it is looked at by these alone.
 *
 * What a name comes to, view.c says. Contents are compared, since times and sizes say what somebody set.
 * Whatever is opened was a regular file, and is the same one when it is read: a pipe or a device in its place is
 * neither waited for nor touched.
 *
 * The files that are real, and those of a layer that lives, change while they are looked at: what has gone meanwhile
 * is not there, and what cannot be read is told and never guessed at. */
#include "layer/walk.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/sys.h"
#include "layer/marks.h"
#include "layer/overlaid.h"
#include "layer/view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BLOCK = 64 * 1024,
    BINARY_HEAD = 8 * 1024, /* a NUL in there makes a file binary, as git has it */
    TEXT_MAX = 1024 * 1024,
};

/* What is known of a file. */
struct fact {
    struct change_stamp stamp;
    int64_t mtime_ns;
    uint64_t device; /* that it is, not that it is on */
};

/* A name in the directory that is looked at, in one step or (step == steps) really. */
struct found {
    char *name;
    size_t step;
    bool is_real;
    bool is_whole;   /* it is asked for, with all that is below; else it is on the way there */
    bool is_unknown; /* it is told that it could not be looked at */
    struct fact fact;
};

struct found_list {
    struct found *items;
    size_t len;
    size_t cap;
};

/* A directory to come. */
struct frame {
    struct frame *next;
    char *path;    /* below the root */
    bool has_real; /* the real one is a directory */
    bool is_whole; /* all of it is asked for */
    uint8_t flags[];
};

struct walk {
    const struct walk_input *in;
    struct changes *changes;
    struct strv *problems;
    struct frame *stack;
    /* of the directory that is looked at */
    struct frame *frame;
    int *dirs;           /* by step; and behind them the real one; -1: it is not there */
    bool has_real_names; /* they were read; else they are looked up */
    struct found_list found;
    struct view_entry *entries; /* of one name */
    char *block[2];
};

/* --- descriptors --- */

int walk_open(int dir, const char *path, int flags)
{
    const struct sys_open_how how = {
        .flags = (uint64_t)flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
        .resolve = SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS |
                   SYS_RESOLVE_NO_XDEV,
    };
    struct sys_open_how found = how;

    if (flags & O_PATH) /* allows no other */
        found.flags = (uint64_t)flags | O_CLOEXEC | O_NOFOLLOW;
    return sys_openat2(dir, *path ? path : ".", &found);
}

static void tell(struct walk *walk, const char *path, const char *name, const char *why)
{
    const char *slash = *path && *name ? "/" : "";
    AUTO_FREE char *below = alloc_strf("%s%s%s", path, slash, name);
    AUTO_FREE char *whole = *below ? path_join(walk->in->path, below) : alloc_str(walk->in->path);

    strv_pushf(walk->problems, "%s: %s", whole, why);
}

static const char *why_not(int error)
{
    return error == ENAMETOOLONG ? "its path is too long, so what is in it is not listed, and "
                                   "stays in the layer: cd there in the "
                                   "layer, and mv it to where its path is shorter"
                                 : strerror(error);
}

static bool is_gone(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

/* Of these we can have none more: not one path's fault. */
static bool is_scarce(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

/* --- one directory is read --- */

static struct fact fact_of(const struct stat *st)
{
    struct fact fact = {
        .mtime_ns = change_ns_of(&st->st_mtim),
        .device = st->st_rdev,
    };

    change_stamp_of(st, &fact.stamp);
    return fact;
}

/* Whether the name in the directory is asked for, or something below it; `*ret_whole`: all that is. */
static bool is_asked(const struct walk *walk, const char *name, bool *ret_whole)
{
    const struct strv *paths = walk->in->paths;
    const char *dir = walk->frame->path;
    AUTO_FREE char *path = NULL;
    size_t low = 0, high = paths ? paths->len : 0;

    *ret_whole = walk->frame->is_whole;
    if (*ret_whole)
        return true;
    path = *dir ? path_join(dir, name) : alloc_str(name);
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (path_compare(paths->items[middle], path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == paths->len || !path_is_within(paths->items[low], path))
        return false;
    *ret_whole = str_eq(paths->items[low], path);
    return true;
}

/* Adds the name as it is in a step, or really; if somebody asked for it. */
static void look_at(struct walk *walk, size_t step, const char *name)
{
    struct found_list *list = &walk->found;
    struct found found = {.step = step, .is_real = step == walk->in->steps};
    struct stat st = {0};

    if (!is_asked(walk, name, &found.is_whole))
        return;
    if (fstatat(walk->dirs[step], name, &st, AT_SYMLINK_NOFOLLOW)) {
        if (is_gone(errno))
            return;
        tell(walk, walk->frame->path, name, why_not(errno));
        found.is_unknown = true;
    }
    found.name = alloc_str(name);
    found.fact = fact_of(&st);
    list->items = alloc_grow(list->items, list->len, &list->cap, sizeof *list->items);
    list->items[list->len++] = found;
}

static void read_dir(struct walk *walk, size_t step, int fd)
{
    char *block = walk->block[0];
    ssize_t len;

    while ((len = getdents64(fd, block, BLOCK)) > 0) {
        for (ssize_t at = 0; at < len;) {
            const struct dirent64 *entry = (const void *)(block + at);
            const char *name = entry->d_name;

            at += entry->d_reclen;
            if (!str_eq(name, ".") && !str_eq(name, ".."))
                look_at(walk, step, name);
        }
    }
    if (len < 0)
        tell(walk, walk->frame->path, "", why_not(errno));
}

/* Opens the directory in each step that has it, and reads it there. */
static int read_steps(struct walk *walk, struct err *err)
{
    const struct walk_input *in = walk->in;
    struct frame *frame = walk->frame;

    for (size_t i = 0; i < in->steps; i++) {
        if (!(frame->flags[i] & VIEW_HAS_DIR))
            continue;
        walk->dirs[i] = walk_open(in->ups[i], frame->path, O_RDONLY | O_DIRECTORY);
        if (walk->dirs[i] < 0 && is_scarce(errno))
            return err_sys(err, "opening %s of a step", frame->path);
        if (walk->dirs[i] < 0) {
            tell(walk, frame->path, "", why_not(errno));
            continue;
        }
        if (overlaid_is_opaque(walk->dirs[i], NULL))
            frame->flags[i] |= VIEW_COVERS;
        read_dir(walk, i, walk->dirs[i]);
    }
    return 0;
}

/* Opens the real directory; its names are read only where some of them may be hidden. */
static int read_real(struct walk *walk, struct err *err)
{
    const struct walk_input *in = walk->in;
    const struct frame *frame = walk->frame;
    bool hides = view_covers(frame->flags, in->from, in->steps);
    int *fd = &walk->dirs[in->steps];

    walk->has_real_names = false;
    if (!frame->has_real)
        return 0;
    *fd = walk_open(in->real, frame->path, (hides ? O_RDONLY : O_PATH) | O_DIRECTORY);
    if (*fd >= 0 && hides) {
        read_dir(walk, in->steps, *fd);
        walk->has_real_names = true;
    }
    if (*fd >= 0 || is_gone(errno))
        return 0;
    if (is_scarce(errno))
        return err_sys(err, "opening %s/%s", in->path, frame->path);
    tell(walk, frame->path, "", why_not(errno));
    if (hides && errno == EACCES)
        *fd = walk_open(in->real, frame->path, O_PATH | O_DIRECTORY);
    return 0;
}

/* By name; of each the real one last, and the newest step first. */
static int found_compare(const void *a, const void *b)
{
    const struct found *one = a, *other = b;
    int order = strcmp(one->name, other->name);

    if (!order && one->is_real != other->is_real)
        return one->is_real ? 1 : -1;
    return order ? order : one->step < other->step ? 1 : one->step > other->step ? -1 : 0;
}

static void found_clear(struct found_list *list)
{
    for (size_t i = 0; i < list->len; i++)
        free(list->items[i].name);
    list->len = 0;
}

/* --- contents --- */

/* A file that can be read, and is the one that was looked at; -1. That it was read is noted nowhere, for that costs as much as
 * reading it; who is not its owner may not ask for that. */
static int open_found(const struct walk *walk, const struct found *found)
{
    const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    const int dir = walk->dirs[found->step];
    AUTO_CLOSE int fd = openat(dir, found->name, flags | O_NOATIME);
    struct stat st;

    if (fd < 0 && errno == EPERM)
        fd = openat(dir, found->name, flags);
    if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_ino != found->fact.stamp.ino ||
        st.st_dev != found->fact.stamp.dev)
        return -1;
    return TAKE_FD(fd);
}

/* What is written through a mapping moves no ctime while its page is dirty. The kernel gives a lease for reading only where
 * nobody has the file open for writing; who opens it just now waits until we have given it back, which SIGURG tells us,
 * that nobody minds. */
static bool is_being_written(const struct walk *walk, const struct found *found)
{
    AUTO_CLOSE int fd = walk->in->is_open[found->step] ? open_found(walk, found) : -1;

    return fd >= 0 && fcntl(fd, F_SETSIG, SIGURG) == 0 && fcntl(fd, F_SETLEASE, F_RDLCK) &&
           errno == EAGAIN;
}

/* Of what cannot be read it is told, and that it differs. */
static bool same_bytes(struct walk *walk, const struct found *now, const struct found *before,
                       bool *ret_binary)
{
    AUTO_CLOSE int one = open_found(walk, now);
    AUTO_CLOSE int other = one < 0 ? -1 : open_found(walk, before);
    uint64_t left = now->fact.stamp.size; /* of both; what is written behind that now is of later */
    bool is_first = true;
    ssize_t len, other_len;

    if (one < 0 || other < 0) {
        tell(walk, walk->frame->path, now->name, "cannot be read, and is taken to differ");
        return false;
    }
    *ret_binary = now->fact.stamp.size > TEXT_MAX;
    for (; left; is_first = false) {
        size_t want = left < BLOCK ? (size_t)left : BLOCK;

        len = fd_read_block(one, walk->block[0], want);
        other_len = fd_read_block(other, walk->block[1], want);
        if (is_first && len > 0 &&
            memchr(walk->block[0], 0, len < BINARY_HEAD ? (size_t)len : BINARY_HEAD))
            *ret_binary = true;
        if (len < 0 || len != other_len || memcmp(walk->block[0], walk->block[1], (size_t)len) != 0)
            return false;
        left -= want;
    }
    return true;
}

static bool same_links(struct walk *walk, const struct found *now, const struct found *before)
{
    ssize_t len = readlinkat(walk->dirs[now->step], now->name, walk->block[0], BLOCK);
    ssize_t other = readlinkat(walk->dirs[before->step], before->name, walk->block[1], BLOCK);

    return len >= 0 && len == other && memcmp(walk->block[0], walk->block[1], (size_t)len) == 0;
}

/* Both are of the same type. */
static bool is_same(struct walk *walk, const struct found *now, const struct found *before,
                    bool *ret_binary)
{
    mode_t mode = now->fact.stamp.mode;

    if (S_ISREG(mode))
        return now->fact.stamp.size == before->fact.stamp.size &&
               same_bytes(walk, now, before, ret_binary);
    if (S_ISLNK(mode))
        return same_links(walk, now, before);
    return S_ISDIR(mode) || now->fact.device == before->fact.device;
}

/* --- one name --- */

/* Of a real one: a step copies what those before it have made, too, and so the first one tells. */
static bool is_copy(const struct walk *walk, const struct view *view, const char *name)
{
    return overlaid_is_copy(walk->dirs[view->first], name);
}

/* What a link says, until a block is used again. */
static const char *link_text(struct walk *walk, const struct found *found)
{
    ssize_t len = readlinkat(walk->dirs[found->step], found->name, walk->block[0], BLOCK - 1);

    walk->block[0][len < 0 ? 0 : len] = '\0';
    return len < 0 ? "/" : walk->block[0];
}

static void add_change(struct walk *walk, int kind, const struct view *view,
                       const struct found *now, const struct found *before)
{
    const struct walk_input *in = walk->in;
    struct changes *list = walk->changes;
    const char *dir = walk->frame->path, *name = now ? now->name : before->name;
    struct change *change;

    list->items = alloc_grow(list->items, list->len, &list->cap, sizeof *list->items);
    change = &list->items[list->len++];
    *change = (struct change){
        .root = in->root,
        .path = *dir ? path_join(dir, name) : alloc_str(name),
        .kind = (enum change_kind)kind,
        .step = in->numbers[view->step],
        .first_step = in->numbers[view->first],
    };
    if (now && kind != CHANGE_DELETED) {
        change->layer = now->fact.stamp;
        change->layer_mtime_ns = now->fact.mtime_ns;
        if (S_ISREG(now->fact.stamp.mode) && is_being_written(walk, now))
            change->layer.ctime_ns = CHANGE_BEING_WRITTEN;
        change->is_copy =
            kind == CHANGE_ADDED && S_ISREG(now->fact.stamp.mode) && is_copy(walk, view, name);
    }
    if (before && kind != CHANGE_ADDED) {
        change->real = before->fact.stamp;
        change->real_mtime_ns = before->fact.mtime_ns;
        change->base_step = before->step < in->steps ? in->numbers[before->step] : 0;
    }
    marks_of(change, S_ISLNK(change->layer.mode) ? link_text(walk, now) : NULL,
             marks_protected(change->path, in->protected_names));
}

static void judge(struct walk *walk, const struct view *view, const struct found *now,
                  const struct found *before)
{
    mode_t mode = now ? now->fact.stamp.mode : 0, old = before ? before->fact.stamp.mode : 0;
    bool is_binary = false;
    bool same = mode && (mode & S_IFMT) == (old & S_IFMT) && is_same(walk, now, before, &is_binary);
    int kind = view_kind(mode, old, same);

    if (kind == CHANGE_TYPE && (S_ISDIR(mode) || S_ISDIR(old))) {
        add_change(walk, CHANGE_DELETED, view, now, before);
        add_change(walk, CHANGE_ADDED, view, now, before);
    } else if (kind) {
        add_change(walk, kind, view, now, before);
        walk->changes->items[walk->changes->len - 1].is_binary = is_binary;
    }
}

static void push(struct walk *walk, const struct view_name *name, const char *text, bool is_whole)
{
    const char *dir = walk->frame->path;
    struct frame *frame = alloc_zero(1, sizeof *frame + name->steps);

    frame->path = *dir ? path_join(dir, text) : alloc_str(text);
    frame->has_real = name->has_real;
    frame->is_whole = is_whole;
    view_below(name, frame->flags);
    frame->next = walk->stack;
    walk->stack = frame;
}

static bool is_dir(const struct found *found)
{
    return found && S_ISDIR(found->fact.stamp.mode);
}

/* The `len` items are all that there is of one name. */
static void judge_name(struct walk *walk, const struct found *items, size_t len)
{
    const struct walk_input *in = walk->in;
    const struct found *real = items[len - 1].is_real ? &items[len - 1] : NULL;
    struct view_name name = {.dir = walk->frame->flags,
                             .steps = in->steps,
                             .from = in->from,
                             .entries = walk->entries,
                             .len = len - (real ? 1 : 0),
                             .has_real = real};
    const struct found *now, *before;
    struct view view;

    for (size_t i = 0; i < len; i++)
        if (items[i].is_unknown)
            return;
    if (in->leaves_git && is_dir(real) && str_eq(real->name, ".git"))
        return;
    for (size_t i = 0; i < name.len; i++)
        walk->entries[i] = (struct view_entry){
            .step = items[i].step,
            .mode = items[i].fact.stamp.mode,
            .is_whiteout = S_ISCHR(items[i].fact.stamp.mode) && !items[i].fact.device,
        };
    view_of(&name, &view);
    if (view.is_untouched)
        return;
    now = view.now ? &items[view.now - walk->entries] : NULL;
    before = view.before ? &items[view.before - walk->entries] : view.is_before_real ? real : NULL;
    if (items->is_whole)
        judge(walk, &view, now, before);
    name.has_real = is_dir(real);
    if (is_dir(now) || is_dir(before))
        push(walk, &name, items->name, items->is_whole);
}

/* --- one directory --- */

/* Those of which only a step knows are looked for among the real ones, too. */
static void look_for_real(struct walk *walk)
{
    struct found_list *list = &walk->found;
    size_t len = list->len;

    for (size_t i = 0; i < len; i++)
        if (i == 0 || !str_eq(list->items[i].name, list->items[i - 1].name))
            look_at(walk, walk->in->steps, list->items[i].name);
}

static void found_sort(struct found_list *list)
{
    if (list->len)
        qsort(list->items, list->len, sizeof *list->items, found_compare);
}

static int walk_dir(struct walk *walk, struct err *err)
{
    const struct walk_input *in = walk->in;
    struct found_list *list = &walk->found;

    if (read_steps(walk, err) || read_real(walk, err))
        return -1;
    found_sort(list);
    if (walk->dirs[in->steps] >= 0 && !walk->has_real_names) {
        look_for_real(walk);
        found_sort(list);
    }
    for (size_t i = 0, end; i < list->len; i = end) {
        for (end = i + 1; end < list->len; end++)
            if (!str_eq(list->items[i].name, list->items[end].name))
                break;
        judge_name(walk, list->items + i, end - i);
    }
    return 0;
}

static void dir_done(struct walk *walk)
{
    found_clear(&walk->found);
    for (size_t i = 0; i <= walk->in->steps; i++) {
        auto_close(&walk->dirs[i]);
        walk->dirs[i] = -1;
    }
    free(walk->frame->path);
    free(walk->frame);
    walk->frame = NULL;
}

static void walk_done(struct walk *walk)
{
    while (walk->stack) {
        walk->frame = walk->stack;
        walk->stack = walk->frame->next;
        dir_done(walk);
    }
    free(walk->dirs);
    free(walk->found.items);
    free(walk->entries);
    free(walk->block[0]);
    free(walk->block[1]);
}

static void walk_init(struct walk *walk, const struct walk_input *in)
{
    struct frame *frame = alloc_zero(1, sizeof *frame + in->steps);

    frame->path = alloc_str("");
    frame->has_real = true;
    frame->is_whole = !in->paths;
    for (size_t i = 0; i < in->steps; i++)
        frame->flags[i] = in->ups[i] >= 0 ? VIEW_HAS_DIR : 0;
    walk->stack = frame;
    walk->dirs = alloc_zero(in->steps + 1, sizeof *walk->dirs);
    for (size_t i = 0; i <= in->steps; i++)
        walk->dirs[i] = -1;
    walk->entries = alloc_zero(in->steps, sizeof *walk->entries);
    walk->block[0] = alloc_zero(1, BLOCK);
    walk->block[1] = alloc_zero(1, BLOCK);
}

int walk_root(const struct walk_input *in, struct changes *ret, struct strv *ret_problems,
              struct err *err)
{
    AUTO(walk_done) struct walk walk = {.in = in, .changes = ret, .problems = ret_problems};
    int failed = 0;

    walk_init(&walk, in);
    while (!failed && walk.stack) {
        walk.frame = walk.stack;
        walk.stack = walk.frame->next;
        failed = walk_dir(&walk, err);
        dir_done(&walk);
    }
    return failed;
}
