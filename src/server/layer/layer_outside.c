/* See layer_outside.h. Only folders are watched, once each and never a whole tree; which of their names matter is
 * looked up in the sorted paths. A folder that is missing, or may not be watched, is left out, and so is what comes beyond the
 * limit: who acts on a path is told of a conflict anyway, when it is accepted. */
#include "server/layer/layer_outside.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "base/sys.h"
#include "loop/loop.h"

#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define WATCH_MASK                                                                                 \
    (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ATTRIB |            \
     IN_MOVE_SELF | IN_ONLYDIR | IN_DONT_FOLLOW)

struct folder {
    char *path;
    int number; /* inotify's */
    bool is_wanted;
};

struct layer_outside {
    int fd;
    struct loop_watch *watch;
    struct loop_timer *timer;
    struct strv paths; /* sorted */
    struct folder folders[LAYER_OUTSIDE_FOLDERS];
    size_t len;
    struct strv changed;
    bool has_more;
    void (*on_changed)(void *data, const struct strv *paths, bool has_more);
    void *data;
};

/* --- events --- */

static int compare(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

static struct folder *find_folder(struct layer_outside *outside, int number)
{
    for (size_t i = 0; i < outside->len; i++)
        if (outside->folders[i].number == number)
            return &outside->folders[i];
    return NULL;
}

static void drop_folder(struct layer_outside *outside, struct folder *folder)
{
    inotify_rm_watch(outside->fd, folder->number);
    free(folder->path);
    *folder = outside->folders[--outside->len];
}

static void take_path(struct layer_outside *outside, const char *path)
{
    if (!outside->paths.len ||
        !bsearch(&path, outside->paths.items, outside->paths.len, sizeof path, compare) ||
        strv_has(&outside->changed, path))
        return;
    if (!outside->changed.len && !outside->has_more)
        loop_timer_start(outside->timer, LAYER_OUTSIDE_NS);
    if (outside->changed.len < LAYER_OUTSIDE_TOLD)
        strv_push(&outside->changed, path);
    else
        outside->has_more = true;
}

/* A folder that went, or has another name, is watched anew when it is there again. What the kernel could not keep is more. */
static void take_event(struct layer_outside *outside, const struct inotify_event *event)
{
    struct folder *folder = find_folder(outside, event->wd);
    AUTO_FREE char *path = folder && event->len ? path_join(folder->path, event->name) : NULL;

    if (path) {
        take_path(outside, path);
    } else if (folder && (event->mask & (IN_IGNORED | IN_MOVE_SELF))) {
        drop_folder(outside, folder);
    } else if ((event->mask & IN_Q_OVERFLOW) && outside->paths.len && !outside->has_more) {
        if (!outside->changed.len)
            loop_timer_start(outside->timer, LAYER_OUTSIDE_NS);
        outside->has_more = true;
    }
}

/* One block for each turn of the loop. */
static void on_ready(void *data, int fd, unsigned ready)
{
    struct layer_outside *outside = data;
    _Alignas(struct inotify_event) char events[16384];
    ssize_t len = read(fd, events, sizeof events);

    for (ssize_t at = 0; at < len;) {
        const struct inotify_event *event = (const void *)(events + at);

        at += (ssize_t)(sizeof *event + event->len);
        take_event(outside, event);
    }
}

static void on_time(void *data)
{
    struct layer_outside *outside = data;
    AUTO(strv_done) struct strv changed = outside->changed;
    bool has_more = outside->has_more;

    outside->changed = (struct strv){0};
    outside->has_more = false;
    outside->on_changed(outside->data, &changed, has_more); /* may free it */
}

/* --- what is watched --- */

static struct folder *find_path(struct layer_outside *outside, const char *path)
{
    for (size_t i = 0; i < outside->len; i++)
        if (str_eq(outside->folders[i].path, path))
            return &outside->folders[i];
    return NULL;
}

static void want_folder(struct layer_outside *outside, const char *path)
{
    struct folder *folder = find_path(outside, path);
    int number;

    if (folder) {
        folder->is_wanted = true;
        return;
    }
    if (outside->len == LAYER_OUTSIDE_FOLDERS)
        return;
    number = sys_fault() ? -1 : inotify_add_watch(outside->fd, path, WATCH_MASK);
    if (number >= 0 && !find_folder(outside, number))
        outside->folders[outside->len++] =
            (struct folder){.path = alloc_str(path), .number = number, .is_wanted = true};
}

void layer_outside_set(struct layer_outside *outside, struct strv *paths)
{
    AUTO_FREE char *last = NULL;

    strv_done(&outside->paths);
    outside->paths = *paths;
    *paths = (struct strv){0};
    strv_sort(&outside->paths);
    for (size_t i = 0; i < outside->len; i++)
        outside->folders[i].is_wanted = false;
    for (size_t i = 0; i < outside->paths.len; i++) {
        AUTO_FREE char *parent = path_parent(outside->paths.items[i]);

        if (last && str_eq(parent, last))
            continue;
        want_folder(outside, parent);
        free(last);
        last = TAKE_PTR(parent);
    }
    for (size_t i = 0; i < outside->len;) {
        if (outside->folders[i].is_wanted)
            i++;
        else
            drop_folder(outside, &outside->folders[i]);
    }
}

/* --- life --- */

static void outside_auto(struct layer_outside **slot)
{
    layer_outside_free(*slot);
}

struct layer_outside *layer_outside_new(struct loop *loop,
                                        void (*on_changed)(void *data, const struct strv *paths,
                                                           bool has_more),
                                        void *data, struct err *err)
{
    AUTO(outside_auto) struct layer_outside *outside = alloc_zero(1, sizeof *outside);

    outside->on_changed = on_changed;
    outside->data = data;
    outside->fd = sys_fault() ? -1 : inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (outside->fd < 0) {
        err_sys(err, "watching the files of a layer");
        return NULL;
    }
    outside->timer = loop_timer_new(loop, on_time, outside);
    outside->watch = loop_watch_new(loop, outside->fd, LOOP_READ, on_ready, outside, err);
    return outside->watch ? TAKE_PTR(outside) : NULL;
}

void layer_outside_free(struct layer_outside *outside)
{
    if (!outside)
        return;
    loop_watch_free(outside->watch);
    loop_timer_free(outside->timer);
    if (outside->fd >= 0)
        close(outside->fd);
    for (size_t i = 0; i < outside->len; i++)
        free(outside->folders[i].path);
    strv_done(&outside->paths);
    strv_done(&outside->changed);
    free(outside);
}
