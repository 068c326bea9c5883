/* See loop.h. What libevent gives is kept: its epoll backend, its timer heap. What it does not
 * give is a rule on who may free what and when; here every watch owns exactly one event, and
 * event_del() in a program without threads is immediate: nothing that was pending comes after it.
 *
 * Only epoll is allowed as a backend and the environment is not asked (EVENT_NOEPOLL and friends
 * would change what works), so that a loop costs an epoll descriptor and two of libevent's pipes.
 * Time is not cached, or a timer set at the end of a long callback would be short by its length;
 * a timer is never early.
 *
 * Signals come by signalfd and not by libevent's handlers: those are one set per program, and run
 * on whatever stack is there.
 *
 * In a loop of the host's: an epoll descriptor is itself readable when something that it watches
 * is, so libevent's says everything but time. Time comes in by a timerfd that it watches, too.
 * libevent does not give its epoll descriptor out, but the kernel tells which one watches a
 * descriptor that is known: /proc/self/fdinfo/N has a line "tfd: M" for each (proc(5)). So the
 * timerfd is what it is found by. */
#include "loop/loop.h"

#include "loop/loop_base.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* --- a loop as a descriptor --- */

struct loop {
    struct event_base *base;
    struct list running; /* timers */
    bool is_dispatching; /* in loop_dispatch(), which looks after the timerfd itself */

    /* For a loop of the host's; NULL and -1 before loop_fd() */
    struct loop_watch *host_watch; /* of the timerfd */
    int host_epoll;                /* libevent's; borrowed */
    int host_timer;
    uint64_t host_due_ns; /* what the timerfd is set to; UINT64_MAX: not set */
};

/* Not clock_now_ns(): the kernel's timers go on while a test has stopped that one. */
static uint64_t loop_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * CLOCK_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Long enough for the watches of ten thousand sessions. */
#define FDINFO_MAX ((size_t)8 << 20)

static bool epoll_watches(int epoll, int fd)
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
        char target[32] = "";

        if (readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1) > 0 &&
            str_eq(target, "anon_inode:[eventpoll]") && epoll_watches(number, fd))
            return number;
    }
    return err_set(err, ERR_UNSUPPORTED, "the descriptor of the event loop cannot be found");
}

static void host_timer_ready(void *data, int fd, unsigned ready)
{
    uint64_t count; /* how often it went off does not matter */

    if (read(fd, &count, sizeof count) == (ssize_t)sizeof count)
        ((struct loop *)data)->host_due_ns = UINT64_MAX;
}

/* The descriptor gets readable at `due_ns` on CLOCK_MONOTONIC (0 or past: at once). */
static void host_timer_set(struct loop *loop, uint64_t due_ns)
{
    bool is_never = due_ns == UINT64_MAX;
    struct itimerspec when = {
        .it_value = {.tv_sec = is_never ? 0 : (time_t)(due_ns / CLOCK_NS_PER_S),
                     .tv_nsec = is_never ? 0 : (long)(due_ns % CLOCK_NS_PER_S)},
    };

    loop->host_due_ns = due_ns;
    if (due_ns == 0)
        when.it_value.tv_nsec = 1; /* all zero would stop it */
    timerfd_settime(loop->host_timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* After a round: at `due_ns` and not sooner; UINT64_MAX: never. Something that is due now, but was
 * not done in the round that is just over, is due in a millisecond: libevent's clock lags by a
 * few. */
static void host_timer_rewind(struct loop *loop, uint64_t due_ns)
{
    uint64_t soon_ns = loop_clock_ns() + CLOCK_NS_PER_MS;

    if (due_ns && due_ns < soon_ns) /* 0 is a deferred call: it is not held up by that clock */
        due_ns = soon_ns;
    if (due_ns != loop->host_due_ns)
        host_timer_set(loop, due_ns);
}

/* --- the loop --- */

struct loop_watch {
    struct event *event;
    struct loop *loop;
    int fd;
    unsigned interest;
    loop_watch_fn *on_ready;
    void *data;
};

struct loop_timer {
    struct event *event;
    struct loop *loop;
    struct list in_running;
    uint64_t due_ns; /* on loop_clock_ns() */
    loop_timer_fn *on_time;
    void *data;
};

struct loop_signals {
    struct loop_watch *watch;
    int fd;
    sigset_t before; /* the mask to go back to */
    loop_signal_fn *on_signal;
    void *data;
};

/* What fails is returned to the caller and said there, not written to stderr by libevent. */
static void loop_log(int severity, const char *message)
{
}

static void loop_config_free(struct event_config **config)
{
    if (*config)
        event_config_free(*config);
}

struct loop *loop_new(struct err *err)
{
    AUTO(loop_config_free) struct event_config *config = event_config_new();
    struct event_base *base = NULL;
    struct loop *loop;

    event_set_log_callback(loop_log);
    if (config) {
        event_config_avoid_method(config, "select");
        event_config_avoid_method(config, "poll");
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
        event_config_set_flag(config, EVENT_BASE_FLAG_IGNORE_ENV);
        event_config_set_flag(config, EVENT_BASE_FLAG_NO_CACHE_TIME);
        base = event_base_new_with_config(config);
    }
    if (!base) {
        err_sys(err, "making an event loop");
        return NULL;
    }
    loop = alloc_zero(1, sizeof *loop);
    loop->base = base;
    loop->host_epoll = loop->host_timer = -1;
    return loop;
}

static void host_close(struct loop *loop)
{
    loop_watch_free(TAKE_PTR(loop->host_watch));
    if (loop->host_timer >= 0)
        close(TAKE_FD(loop->host_timer));
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    host_close(loop);
    event_base_free(loop->base);
    free(loop);
}

struct event_base *loop_event_base(struct loop *loop)
{
    return loop->base;
}

int loop_run(struct loop *loop, const bool *until, struct err *err)
{
    while (!*until) {
        int rc = event_base_loop(loop->base, EVLOOP_ONCE);

        if (rc < 0)
            return err_sys(err, "waiting for events");
        if (rc > 0 && !*until)
            return err_set(err, ERR_BUG, "the event loop has nothing left to wait for");
    }
    return 0;
}

static void loop_watch_ready(evutil_socket_t fd, short what, void *data)
{
    struct loop_watch *watch = data;

    watch->on_ready(watch->data, fd,
                    (what & EV_READ ? LOOP_READ : 0u) | (what & EV_WRITE ? LOOP_WRITE : 0u));
}

static int loop_watch_arm(struct loop_watch *watch, unsigned interest)
{
    const int what =
        EV_PERSIST | (interest & LOOP_READ ? EV_READ : 0) | (interest & LOOP_WRITE ? EV_WRITE : 0);

    event_del(watch->event);
    watch->interest = interest;
    if (interest == LOOP_NOTHING)
        return 0;
    event_assign(watch->event, watch->loop->base, watch->fd, (short)what, loop_watch_ready, watch);
    return event_add(watch->event, NULL);
}

struct loop_watch *loop_watch_new(struct loop *loop, int fd, unsigned interest,
                                  loop_watch_fn *on_ready, void *data, struct err *err)
{
    struct loop_watch *watch = alloc_zero(1, sizeof *watch);

    *watch = (struct loop_watch){
        .event = event_new(loop->base, fd, EV_PERSIST | EV_READ, loop_watch_ready, watch),
        .loop = loop,
        .fd = fd,
        .on_ready = on_ready,
        .data = data,
    };
    if (!watch->event || loop_watch_arm(watch, interest)) {
        if (errno == EPERM) /* epoll_ctl(2): what has no readiness, like files and /dev/null */
            err_set(err, ERR_UNSUPPORTED, "descriptor %d is always ready", fd);
        else
            err_sys(err, "watching descriptor %d", fd);
        loop_watch_free(watch);
        return NULL;
    }
    return watch;
}

void loop_watch_set(struct loop_watch *watch, unsigned interest)
{
    if (interest != watch->interest)
        loop_watch_arm(watch, interest);
}

void loop_watch_free(struct loop_watch *watch)
{
    if (!watch)
        return;
    if (watch->event)
        event_free(watch->event);
    free(watch);
}

static void loop_timer_wait(struct loop_timer *timer, uint64_t delay_ns)
{
    uint64_t us = delay_ns / 1000 + (delay_ns % 1000 != 0);
    struct timeval delay = {
        .tv_sec = us / 1000000 < INT_MAX ? (time_t)(us / 1000000) : INT_MAX,
        .tv_usec = (suseconds_t)(us % 1000000),
    };

    event_add(timer->event, &delay);
}

/* libevent reckons with CLOCK_MONOTONIC_COARSE, which lags by up to a tick of the kernel, so it may
 * be early by as much. Its precise mode would cost a system call in every round. */
static void loop_timer_ready(evutil_socket_t fd, short what, void *data)
{
    struct loop_timer *timer = data;
    uint64_t now = timer->due_ns ? loop_clock_ns() : 0;

    if (now < timer->due_ns) {
        loop_timer_wait(timer, timer->due_ns - now);
        return;
    }
    list_remove(&timer->in_running);
    timer->on_time(timer->data);
}

struct loop_timer *loop_timer_new(struct loop *loop, loop_timer_fn *on_time, void *data)
{
    struct loop_timer *timer = alloc_zero(1, sizeof *timer);

    timer->loop = loop;
    timer->on_time = on_time;
    timer->data = data;
    timer->event = event_new(loop->base, -1, 0, loop_timer_ready, timer);
    if (!timer->event)
        abort(); /* only memory can be missing; see alloc.h */
    return timer;
}

void loop_timer_start(struct loop_timer *timer, uint64_t delay_ns)
{
    timer->due_ns = delay_ns ? clock_after(loop_clock_ns(), delay_ns) : 0;
    loop_timer_wait(timer, delay_ns);
    if (!list_is_linked(&timer->in_running))
        list_add(&timer->loop->running, &timer->in_running);
    if (timer->loop->host_watch && !timer->loop->is_dispatching &&
        timer->due_ns < timer->loop->host_due_ns)
        host_timer_set(timer->loop, timer->due_ns);
}

void loop_timer_stop(struct loop_timer *timer)
{
    event_del(timer->event);
    list_remove(&timer->in_running);
}

void loop_timer_free(struct loop_timer *timer)
{
    if (!timer)
        return;
    list_remove(&timer->in_running);
    event_free(timer->event);
    free(timer);
}

/* --- in a loop of the host's --- */

/* Of one dispatch; what is deferred again and again must not keep the host. */
enum { ROUNDS_MAX = 4 };

/* When the host has to come back if nothing else is ready; 0: for what is deferred. */
static uint64_t loop_due_ns(const struct loop *loop)
{
    const struct loop_timer *timer;
    uint64_t due_ns = UINT64_MAX;

    list_for_each(timer, &loop->running, in_running)
        if (timer->due_ns < due_ns)
            due_ns = timer->due_ns;
    return due_ns;
}

int loop_fd(struct loop *loop, struct err *err)
{
    if (loop->host_watch)
        return loop->host_epoll;
    loop->host_due_ns = UINT64_MAX;
    loop->host_timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (loop->host_timer < 0)
        return err_sys(err, "making a timer descriptor");
    loop->host_watch =
        loop_watch_new(loop, loop->host_timer, LOOP_READ, host_timer_ready, loop, err);
    loop->host_epoll = loop->host_watch ? find_epoll(loop->host_timer, err) : -1;
    if (loop->host_epoll < 0)
        host_close(loop);
    else
        host_timer_rewind(loop, loop_due_ns(loop));
    return loop->host_epoll;
}

/* By epoll_wait(2), which costs a turn less in the kernel than poll(2) on its descriptor. */
int loop_wait(struct loop *loop, int timeout_ms, struct err *err)
{
    struct epoll_event first; /* stays ready, for loop_dispatch() */
    int fd = loop_fd(loop, err);

    if (fd < 0)
        return -1;
    if (epoll_wait(fd, &first, 1, timeout_ms) < 0 && errno != EINTR)
        return err_sys(err, "waiting for events");
    return 0;
}

/* Not EVLOOP_NONBLOCK alone, which comes back only when nothing is ready any more: never, if a
 * peer writes without end. Deferred calls are made in rounds of their own: to wake the host for
 * them by the timerfd would take longer than all the rest (setting one that is due costs tens of
 * microseconds). */
int loop_dispatch(struct loop *loop, struct err *err)
{
    uint64_t due_ns = 0;
    int rc = 0;

    loop->is_dispatching = true;
    for (int i = 0; i < ROUNDS_MAX && rc >= 0 && !due_ns; i++) {
        rc = event_base_loop(loop->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
        due_ns = loop_due_ns(loop);
    }
    loop->is_dispatching = false;
    if (rc < 0)
        return err_sys(err, "looking for events");
    if (loop->host_watch)
        host_timer_rewind(loop, due_ns);
    return 0;
}

/* One signal per turn: the callback may free the watch, and what is left stays readable. */
static void loop_signals_ready(void *data, int fd, unsigned ready)
{
    struct loop_signals *signals = data;
    struct signalfd_siginfo info;

    if (read(fd, &info, sizeof info) == (ssize_t)sizeof info)
        signals->on_signal(signals->data, (int)info.ssi_signo);
}

struct loop_signals *loop_signals_new(struct loop *loop, const int *list, loop_signal_fn *on_signal,
                                      void *data, struct err *err)
{
    AUTO_CLOSE int fd = -1;
    struct loop_signals *signals;
    sigset_t set;

    sigemptyset(&set);
    for (; *list; list++)
        sigaddset(&set, *list);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) {
        err_sys(err, "making a signal descriptor");
        return NULL;
    }
    signals = alloc_zero(1, sizeof *signals);
    *signals = (struct loop_signals){.on_signal = on_signal, .data = data};
    signals->watch = loop_watch_new(loop, fd, LOOP_READ, loop_signals_ready, signals, err);
    if (!signals->watch) {
        free(signals);
        return NULL;
    }
    signals->fd = TAKE_FD(fd);
    sigprocmask(SIG_BLOCK, &set, &signals->before);
    return signals;
}

void loop_signals_free(struct loop_signals *signals)
{
    if (!signals)
        return;
    loop_watch_free(signals->watch);
    close(signals->fd);
    sigprocmask(SIG_SETMASK, &signals->before, NULL);
    free(signals);
}
