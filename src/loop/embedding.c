/* See embedding.h. libevent does not give its epoll descriptor out, but the kernel tells which one
 * watches a descriptor that is known: /proc/self/fdinfo/N has a line "tfd: M" for each
 * (proc(5)). So the timerfd is what it is found by. */
#include "loop/embedding.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "loop/loop.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

struct embedding {
    int epoll; /* libevent's; borrowed */
    int timer;
    uint64_t due_ns; /* UINT64_MAX: not set */
    struct loop_watch *watch;
};

/* Long enough for the watches of ten thousand sessions. */
#define FDINFO_MAX ((size_t)8 << 20)

static bool watches(int epoll, int fd)
{
    AUTO_FREE char *path = alloc_strf("/proc/self/fdinfo/%d", epoll);
    AUTO(buf_done) struct buf text = {0};
    struct err ignored;
    const char *line;

    if (fd_read_file(path, FDINFO_MAX, &text, &ignored))
        return false;
    for (line = text.data; line && (line = strstr(line, "tfd:")); line++)
        if (strtol(line + strlen("tfd:"), NULL, 10) == fd)
            return true;
    return false;
}

static void dir_auto(DIR **slot)
{
    if (*slot)
        closedir(*slot);
}

static int find_epoll(int fd, struct err *err)
{
    AUTO(dir_auto) DIR *dir = opendir("/proc/self/fd");
    const struct dirent *entry;

    if (!dir)
        return err_sys(err, "reading /proc/self/fd");
    while ((entry = readdir(dir))) {
        int number = (int)strtol(entry->d_name, NULL, 10);
        struct err ignored;
        AUTO_FREE char *target = *entry->d_name == '.' ? NULL : fd_target(number, &ignored);

        if (target && str_eq(target, "anon_inode:[eventpoll]") && watches(number, fd))
            return number;
    }
    return err_set(err, ERR_UNSUPPORTED, "the descriptor of the event loop cannot be found");
}

static void on_time(void *data, int fd, unsigned ready)
{
    uint64_t count; /* how often it went off does not matter */

    if (read(fd, &count, sizeof count) == (ssize_t)sizeof count)
        ((struct embedding *)data)->due_ns = UINT64_MAX;
}

static void embedding_auto(struct embedding **slot)
{
    embedding_free(*slot);
}

struct embedding *embedding_new(struct loop *loop, struct err *err)
{
    AUTO(embedding_auto) struct embedding *embedding = alloc_zero(1, sizeof *embedding);

    embedding->due_ns = UINT64_MAX;
    embedding->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (embedding->timer < 0) {
        err_sys(err, "making a timer descriptor");
        return NULL;
    }
    embedding->watch = loop_watch_new(loop, embedding->timer, LOOP_READ, on_time, embedding, err);
    if (!embedding->watch)
        return NULL;
    embedding->epoll = find_epoll(embedding->timer, err);
    return embedding->epoll < 0 ? NULL : TAKE_PTR(embedding);
}

void embedding_free(struct embedding *embedding)
{
    if (!embedding)
        return;
    loop_watch_free(embedding->watch);
    if (embedding->timer >= 0)
        close(embedding->timer);
    free(embedding);
}

int embedding_fd(const struct embedding *embedding)
{
    return embedding->epoll;
}

static void set_timer(struct embedding *embedding, uint64_t due_ns)
{
    bool is_never = due_ns == UINT64_MAX;
    struct itimerspec when = {
        .it_value = {.tv_sec = is_never ? 0 : (time_t)(due_ns / CLOCK_NS_PER_S),
                     .tv_nsec = is_never ? 0 : (long)(due_ns % CLOCK_NS_PER_S)},
    };

    embedding->due_ns = due_ns;
    if (due_ns == 0)
        when.it_value.tv_nsec = 1; /* all zero would stop it */
    timerfd_settime(embedding->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

void embedding_wake(struct embedding *embedding, uint64_t due_ns)
{
    if (embedding && due_ns < embedding->due_ns)
        set_timer(embedding, due_ns);
}

void embedding_rewind(struct embedding *embedding, uint64_t due_ns)
{
    struct timespec now;
    uint64_t soon_ns;

    clock_gettime(CLOCK_MONOTONIC, &now);
    soon_ns = (uint64_t)now.tv_sec * CLOCK_NS_PER_S + (uint64_t)now.tv_nsec + CLOCK_NS_PER_MS;
    if (due_ns && due_ns < soon_ns) /* 0 is a deferred call: it is not held up by that clock */
        due_ns = soon_ns;
    if (due_ns != embedding->due_ns)
        set_timer(embedding, due_ns);
}
