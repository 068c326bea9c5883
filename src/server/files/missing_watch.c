/* See missing_watch.h.
 *
 * Of each path every directory that is there is watched for the name of the next component, from
 * the root down: whatever appears, vanishes or is moved on the way changes one of these names. The
 * watches are set first and the paths looked at after, so nothing falls in between. A path with a
 * link in it is not watched: what the link leads to can change behind its name. */
#include "server/files/missing_watch.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/sys.h"
#include "loop/loop.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATHS_MAX = 1024 };

#define WATCH_MASK                                                                                 \
    (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF |         \
     IN_ONLYDIR | IN_DONT_FOLLOW)

/* A name in a directory that decides something. */
struct interest {
    int dir; /* inotify's number for it */
    char *name;
};

struct missing_watch {
    int fd;
    struct loop_watch *watch;
    struct interest *interests;
    size_t len;
    size_t cap;
    void (*on_change)(void *data);
    void *data;
};

static bool is_interesting(const struct missing_watch *watch, const struct inotify_event *event)
{
    if (event->mask & (IN_Q_OVERFLOW | IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED))
        return true;
    for (size_t i = 0; event->len && i < watch->len; i++)
        if (watch->interests[i].dir == event->wd && str_eq(watch->interests[i].name, event->name))
            return true;
    return false;
}

static void on_ready(void *data, int fd, unsigned ready)
{
    struct missing_watch *watch = data;
    _Alignas(struct inotify_event) char events[16384];
    ssize_t len = read(fd, events, sizeof events);

    for (ssize_t at = 0; at < len;) {
        const struct inotify_event *event = (const void *)(events + at);

        at += (ssize_t)(sizeof *event + event->len);
        if (!is_interesting(watch, event))
            continue;
        loop_watch_set(watch->watch, LOOP_NOTHING);
        watch->on_change(watch->data); /* may free it */
        return;
    }
}

static void add_interest(struct missing_watch *watch, int dir, const char *name, size_t len)
{
    watch->interests =
        alloc_grow(watch->interests, watch->len, &watch->cap, sizeof *watch->interests);
    watch->interests[watch->len++] = (struct interest){.dir = dir, .name = alloc_strn(name, len)};
}

/* Watches the directories on the way to the path, as far as they are there. */
static int watch_path(struct missing_watch *watch, const char *path, struct err *err)
{
    const char *name = path + 1;

    while (*name) {
        size_t len = strcspn(name, "/");
        AUTO_FREE char *dir = alloc_strn(path, name == path + 1 ? 1 : (size_t)(name - path) - 1);
        int number = sys_fault() ? -1 : inotify_add_watch(watch->fd, dir, WATCH_MASK);

        if (number < 0 && errno == ENOENT)
            return 0;
        if (number < 0)
            return err_sys(err, "watching %s", dir);
        add_interest(watch, number, name, len);
        name += len + (name[len] == '/');
    }
    return 0;
}

/* Also for a link that leads nowhere. */
static bool is_there(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

static int watch_all(struct missing_watch *watch, const struct strv *missing, const char *present,
                     struct err *err)
{
    for (size_t i = 0; i < missing->len; i++)
        if (watch_path(watch, missing->items[i], err))
            return -1;
    if (present && watch_path(watch, present, err))
        return -1;
    for (size_t i = 0; i < missing->len; i++)
        if (is_there(missing->items[i]))
            return err_set(err, ERR_INVALID, "%s is there", missing->items[i]);
    if (present && !is_there(present))
        return err_set(err, ERR_INVALID, "%s is not there", present);
    return 0;
}

static void watch_auto(struct missing_watch **slot)
{
    missing_watch_free(*slot);
}

struct missing_watch *missing_watch_new(struct loop *loop, const struct strv *missing,
                                        const char *present, void (*on_change)(void *data),
                                        void *data, struct err *err)
{
    AUTO(watch_auto) struct missing_watch *watch = alloc_zero(1, sizeof *watch);

    watch->fd = -1;
    if (missing->len == 0 || missing->len > PATHS_MAX) {
        err_set(err, ERR_INVALID, "%zu paths: 1 to %d can be waited for", missing->len, PATHS_MAX);
        return NULL;
    }
    watch->on_change = on_change;
    watch->data = data;
    watch->fd = sys_fault() ? -1 : inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watch->fd < 0) {
        err_sys(err, "waiting for paths");
        return NULL;
    }
    watch->watch = loop_watch_new(loop, watch->fd, LOOP_READ, on_ready, watch, err);
    if (!watch->watch || watch_all(watch, missing, present, err))
        return NULL;
    return TAKE_PTR(watch);
}

void missing_watch_free(struct missing_watch *watch)
{
    if (!watch)
        return;
    loop_watch_free(watch->watch);
    if (watch->fd >= 0)
        close(watch->fd);
    for (size_t i = 0; i < watch->len; i++)
        free(watch->interests[i].name);
    free(watch->interests);
    free(watch);
}
