/* What a step is made of before it begins, a folder for each root, and the overlays over these, mounted in namespaces in which
 * nobody is; and what of the mounts stands when it has ended.
 *
 *     next_prepare()     roots/R/next/{up,wk} are made and mounted: when a step begins, or ahead, when the layer is quiet
 *     next_take()        they become those of a step, by a rename: roots/R/0007
 *     next_give_back()   of a step in which nothing was written: they are the next one's again
 *
 * What was made ahead is used only where it still is what would be made now (look()): another root, or another directory in the
 * place of one that is shown as it really is, and it is thrown away. What the kernel has cached of what lies below, when
 * commands have looked at it, is forgotten.
 *
 * Mounts in which something was written are left before there are others: by a process of its own where somebody can wait for it
 * (layer_prepare()), since the kernel then throws away all that it has cached of them.
 *
 * After a kill a folder "next" is in the way of nobody; who opens the layer next removes it. */
#include "layer/inside.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"
#include "base/str.h"
#include "base/sys.h"
#include "layer/change.h"
#include "sandbox/linux/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { SEEN_MAX = 1 << 20 };

/* What an overlay is made of; what it owns is freed together. */
struct mounting {
    struct overlay *overlays;
    size_t len;
    struct strv *lists; /* lowers and what is real of each */
    struct strv texts;
    struct strv real; /* what of the layer's `real` is there */
};

/* --- what is there --- */

int next_open_below(const struct layer *layer, size_t root, int step, struct err *err)
{
    for (size_t i = layer->records_len; i-- > 0;) {
        struct err why;
        int fd;

        if (layer->records[i].step.number >= step)
            continue;
        fd = layer_open_up(layer, root, layer->records[i].step.number, &why);
        if (fd < 0 && why.code == ERR_NOT_FOUND)
            continue;
        if (fd < 0)
            *err = why;
        return fd;
    }
    return layer_open_root(layer, root, err);
}

static bool put(struct buf *seen, const struct stat *st, bool with_time)
{
    const struct {
        uint64_t dev, ino;
        int64_t changed_ns;
    } facts = {st->st_dev, st->st_ino, with_time ? change_ns_of(&st->st_ctim) : 0};

    return buf_append(seen, &facts, sizeof facts);
}

static bool put_fd(struct buf *seen, int fd, bool with_time)
{
    struct stat st;

    return fd >= 0 && !sys_fault() && fstat(fd, &st) == 0 && put(seen, &st, with_time);
}

/* Of `path` below `root`, and of every directory on the way. */
static bool put_path(struct buf *seen, int root, const char *path, bool *ret_is_there)
{
    char part[PATH_MAX];
    size_t len = 0;

    *ret_is_there = strlen(path) < sizeof part;
    if (*ret_is_there)
        memcpy(part, path, strlen(path) + 1);
    while (*ret_is_there && path[len]) {
        struct stat st = {0};

        len += strcspn(path + len + 1, "/") + 1;
        part[len] = '\0';
        *ret_is_there = fstatat(root, part, &st, AT_SYMLINK_NOFOLLOW) == 0;
        if (!put(seen, &st, false))
            return false;
        part[len] = path[len];
    }
    return true;
}

/* What the next step lies over, in bytes that are others when anything of that is another; paths that are to be shown as they
 * really are, and are there, are appended. */
static int look(const struct layer *layer, struct buf *ret, struct strv *ret_real)
{
    buf_init(ret, SEEN_MAX);
    for (size_t i = 0; i < layer->records_len; i++)
        if (!buf_append(ret, &layer->records[i].step.number, sizeof(int)))
            return -1;
    for (size_t i = 0; i < layer->record.roots_len; i++) {
        const char *path = layer->record.roots[i].path;
        struct err ignored;
        AUTO_CLOSE int root = layer->is_covered[i] ? layer_open_root(layer, i, &ignored) : -1;
        AUTO_CLOSE int below = root < 0 ? -1 : next_open_below(layer, i, INT_MAX, &ignored);

        if (!layer->is_covered[i])
            continue;
        if (!put_fd(ret, root, false) || !put_fd(ret, below, true))
            return -1;
        for (size_t k = 0; k < layer->real.len; k++) {
            const char *real = layer->real.items[k];
            bool is_there;

            if (!path_is_within(real, path) || str_eq(real, path))
                continue;
            if (!put_path(ret, root, real + (path[1] ? strlen(path) + 1 : 1), &is_there))
                return -1;
            if (is_there)
                strv_push(ret_real, real);
        }
    }
    return 0;
}

/* The same of its uppers. */
static bool look_at_uppers(const struct layer *layer, int step, struct buf *ret)
{
    buf_init(ret, SEEN_MAX);
    for (size_t i = 0; i < layer->record.roots_len; i++) {
        struct err ignored;
        AUTO_CLOSE int up = layer->is_covered[i] ? layer_open_up(layer, i, step, &ignored) : -1;

        if (layer->is_covered[i] && !put_fd(ret, up, true))
            return false;
    }
    return true;
}

static bool is_same(const struct buf *one, const struct buf *other)
{
    return one->len && one->len == other->len && memcmp(one->data, other->data, one->len) == 0;
}

/* What was mounted is what would be mounted now. */
static bool is_as_seen(const struct layer *layer)
{
    AUTO(strv_done) struct strv real = {0};
    AUTO(buf_done) struct buf seen = {0};

    return look(layer, &seen, &real) == 0 && is_same(&seen, &layer->seen);
}

/* In its uppers, which are empty, nothing ever was: else their ctime would be another. */
static bool is_untouched(const struct layer *layer, int step)
{
    AUTO(buf_done) struct buf uppers = {0};

    return look_at_uppers(layer, step, &uppers) && is_same(&uppers, &layer->uppers);
}

/* --- folders --- */

/* What the root itself looks like inside is what the upper directory looks like. */
static void copy_looks(int from, const struct stat *st, int to)
{
    static const char *const lists[] = {"system.posix_acl_access", "system.posix_acl_default"};
    const struct timespec times[] = {st->st_atim, st->st_mtim};
    char from_name[64], acl[4096];

    if ((st->st_uid != geteuid() || st->st_gid != getegid()) && fchown(to, st->st_uid, st->st_gid))
        errno = 0; /* of another group: it looks like ours inside */
    snprintf(from_name, sizeof from_name, "/proc/self/fd/%d", from);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        ssize_t len = getxattr(from_name, lists[i], acl, sizeof acl);

        if (len > 0 && fsetxattr(to, lists[i], acl, (size_t)len, 0))
            errno = 0;
    }
    futimens(to, times);
}

/* What a kill has left there goes. */
static int make_empty(const struct layer *layer, const char *name, struct err *err)
{
    if (!sys_fault() && mkdirat(layer->fd, name, 0700) == 0)
        return 0;
    return store_discard(layer, layer->fd, name, err) ? -1 : store_make(layer->fd, name, err);
}

static int make_root(const struct layer *layer, size_t root, struct err *err)
{
    AUTO_CLOSE int below = next_open_below(layer, root, INT_MAX, err);
    AUTO_CLOSE int up = -1;
    char name[STORE_NAME_MAX];
    struct stat st;

    if (below < 0)
        return -1;
    if (sys_fault() || fstat(below, &st))
        return err_sys(err, "%s", layer->record.roots[root].path);
    snprintf(name, sizeof name, "roots/%zu", root);
    if (store_make(layer->fd, name, err))
        return -1;
    store_step_dir(root, STEP_NEXT, NULL, name);
    if (make_empty(layer, name, err))
        return -1;
    store_step_dir(root, STEP_NEXT, "wk", name);
    if (store_make(layer->fd, name, err))
        return -1;
    store_step_dir(root, STEP_NEXT, "up", name);
    up = store_make_dir(layer->fd, name, st.st_mode & 07777, err);
    if (up < 0)
        return -1;
    copy_looks(below, &st, up);
    return 0;
}

static int make_folders(const struct layer *layer, struct err *err)
{
    if (store_make(layer->fd, "roots", err))
        return -1;
    for (size_t i = 0; i < layer->record.roots_len; i++)
        if (layer->is_covered[i] && make_root(layer, i, err))
            return -1;
    return 0;
}

void next_drop_folders(struct layer *layer)
{
    for (size_t i = 0; i < layer->record.roots_len; i++) {
        char name[STORE_NAME_MAX];
        struct err ignored;

        store_step_dir(i, STEP_NEXT, NULL, name);
        store_discard(layer, layer->fd, name, &ignored);
    }
    layer->discarded++;
}

static int rename_folders(const struct layer *layer, int from, int to)
{
    for (size_t i = 0; i < layer->record.roots_len; i++) {
        char old[STORE_NAME_MAX], new[STORE_NAME_MAX];

        store_step_dir(i, from, NULL, old);
        store_step_dir(i, to, NULL, new);
        if (layer->is_covered[i] && (sys_fault() || renameat(layer->fd, old, layer->fd, new)))
            return -1;
    }
    return 0;
}

/* --- mounts --- */

static void mounting_done(struct mounting *mounting)
{
    for (size_t i = 0; i < 2 * mounting->len; i++)
        strv_done(&mounting->lists[i]);
    free(mounting->lists);
    free(mounting->overlays);
    strv_done(&mounting->texts);
    strv_done(&mounting->real);
}

/* The path of a part of a step; the caller frees. */
static char *step_path(const struct layer *layer, size_t root, int step, const char *part)
{
    char name[STORE_NAME_MAX];

    store_step_dir(root, step, part, name);
    return path_join(layer->folder, name);
}

static char *keep(struct mounting *mounting, char *text)
{
    strv_push_take(&mounting->texts, text);
    return text;
}

static void add_overlay(const struct layer *layer, size_t index, struct mounting *mounting)
{
    const struct layer_root *root = &layer->record.roots[index];
    struct strv *lowers = &mounting->lists[2 * mounting->len];
    struct strv *real = &mounting->lists[2 * mounting->len + 1];
    char name[STORE_NAME_MAX];

    for (size_t i = layer->records_len; i-- > 0;) {
        int number = layer->records[i].step.number;

        store_step_dir(index, number, "up", name);
        if (faccessat(layer->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            strv_push_take(lowers, step_path(layer, index, number, "up"));
    }
    for (size_t i = 0; i < mounting->real.len; i++)
        if (path_is_within(mounting->real.items[i], root->path))
            strv_push(real, mounting->real.items[i]);
    mounting->overlays[mounting->len++] = (struct overlay){
        .name = keep(mounting, alloc_strf(LAYER_MOUNT_NAME "%s", layer->record.id)),
        .root = root->path,
        .dev = root->dev,
        .ino = root->ino,
        .lowers = (const char *const *)strv_view(lowers),
        .upper = keep(mounting, step_path(layer, index, STEP_NEXT, "up")),
        .work = keep(mounting, step_path(layer, index, STEP_NEXT, "wk")),
        .real = (const char *const *)strv_view(real),
    };
}

static int mount_all(struct layer *layer, struct err *err)
{
    AUTO(mounting_done) struct mounting mounting = {0};
    struct overlay_namespace space;
    bool has_looked; /* what is gone meanwhile the mount will say */

    mounting.overlays = alloc_zero(layer->record.roots_len + 1, sizeof *mounting.overlays);
    mounting.lists = alloc_zero(2 * layer->record.roots_len + 1, sizeof *mounting.lists);
    has_looked = look(layer, &layer->seen, &mounting.real) == 0;
    for (size_t i = 0; i < layer->record.roots_len; i++)
        if (layer->is_covered[i])
            add_overlay(layer, i, &mounting);
    if (overlay_mount(mounting.overlays, mounting.len, layer->space.users, &space, err))
        return -1;
    overlay_close(&layer->space);
    layer->space = space;
    if (!has_looked || !look_at_uppers(layer, STEP_NEXT, &layer->uppers))
        buf_done(&layer->seen);
    return 0;
}

/* --- the mounts of the step that has ended, or that were given back --- */

/* Nobody can write there any more, or that cannot be. */
static void note_frozen(struct layer *layer, bool is_frozen)
{
    struct step_record *record = layer_step_find(layer, layer->mounted_step);
    struct err ignored;

    layer->mounted_step = 0;
    if (!record || !is_frozen)
        return;
    record->step.is_shared = false;
    layer_save_step(layer, record, &ignored);
    layer_steps_changed(layer);
}

/* What was begun apart has an end. What could not be forgotten is mounted anew. */
static void finish_apart(struct layer *layer)
{
    bool is_done;

    if (!layer->apart.pid)
        return;
    is_done = overlay_apart_end(&layer->apart);
    if (layer->mounted_step)
        note_frozen(layer, is_done);
    else if (is_done)
        layer->is_cached = false;
    else
        layer_unprepare(layer);
}

/* It is shared if somebody has a file open there in which he could write. */
static void leave_mounts(struct layer *layer)
{
    struct err ignored;

    finish_apart(layer);
    if (layer->mounted_step)
        note_frozen(layer, overlay_refresh(&layer->space, layer->view.roots, true, &ignored) == 0);
    if (layer->space.mounts >= 0)
        close(TAKE_FD(layer->space.mounts));
}

/* What stands for the next one still does, and of what somebody saw in it the kernel has nothing cached any more. */
static bool forget_cached(struct layer *layer)
{
    struct err ignored;

    finish_apart(layer);
    if (layer->is_prepared && layer->is_cached)
        layer->is_cached = overlay_refresh(&layer->space, layer->view.roots, false, &ignored) != 0;
    return layer->is_prepared && !layer->is_cached;
}

/* Begins what of both there is to do in a process of its own: a descriptor (borrowed) that is readable when that is done; -1: there is
 * nothing, or that cannot be. */
static int leave_apart(struct layer *layer)
{
    struct pollfd end = {.fd = layer->apart.pidfd, .events = POLLIN};
    struct err ignored;

    if (layer->apart.pid && poll(&end, 1, 0) == 0)
        return layer->apart.pidfd;
    finish_apart(layer);
    if (!layer->mounted_step && !(layer->is_prepared && layer->is_cached))
        return -1;
    if (overlay_refresh_apart(&layer->space, layer->view.roots, layer->mounted_step, &layer->apart,
                              &ignored))
        return -1;
    if (layer->mounted_step)
        close(TAKE_FD(layer->space.mounts));
    return layer->apart.pidfd;
}

/* --- the next step --- */

static int prepare(struct layer *layer, struct err *err)
{
    struct err why;

    sandbox_view_settle(&layer->view); /* what it wrote to is a lower layer now */
    leave_mounts(layer);
    buf_done(&layer->seen);
    buf_done(&layer->uppers);
    if (make_folders(layer, &why) || mount_all(layer, &why)) {
        *err = why;
        next_drop_folders(layer);
        store_empty_trash(layer, &why);
        return -1;
    }
    layer->is_prepared = true;
    layer->is_cached = false;
    return 0;
}

/* The user namespace stays for the next step. */
void layer_unprepare(struct layer *layer)
{
    if (layer->launches || layer->is_adopted)
        return;
    leave_mounts(layer);
    if (layer->is_prepared)
        next_drop_folders(layer);
    layer->is_prepared = false;
}

int layer_prepare(struct layer *layer)
{
    struct err ignored;
    int apart;

    if (layer->launches || layer->space.users < 0)
        return -1;
    apart = leave_apart(layer);
    if (apart < 0 && !layer->is_prepared)
        prepare(layer, &ignored);
    return apart;
}

int next_prepare(struct layer *layer, struct err *err)
{
    if (layer->is_prepared && is_as_seen(layer) && forget_cached(layer))
        return 0;
    layer_unprepare(layer);
    return prepare(layer, err);
}

int next_take(struct layer *layer, int step, struct err *err)
{
    if (rename_folders(layer, STEP_NEXT, step)) {
        err_sys(err, "making step %d in a layer", step);
        layer_unprepare(layer);
        return -1;
    }
    layer->is_prepared = false;
    layer->view.users = layer->space.users;
    layer->view.mounts = layer->space.mounts;
    return 0;
}

bool next_give_back(struct layer *layer, int step)
{
    if (!is_untouched(layer, step) || rename_folders(layer, step, STEP_NEXT))
        return false;
    layer->is_prepared = layer->is_cached = true;
    return true;
}
