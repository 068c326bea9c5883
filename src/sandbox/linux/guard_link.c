/* See guard_link.h.
 *
 * The guard is one for all threads of this process, each of which may have an engine: what is known
 * of it is changed under a lock that is held for the start of a process at most. It is no child of a
 * process that was forked from ours; that one starts a guard of its own.
 *
 * A dead guard is found when the next command is handed to it. Those that it had lose their channel
 * without the last word (guard_channel_is_broken()), and whatever they ask the kernel answers with
 * ENOSYS. */
#include "sandbox/linux/guard_link.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/list.h"
#include "base/pass.h"
#include "base/path.h"
#include "base/program.h"
#include "base/sys.h"
#include "sandbox/launcher/restrict.h"
#include "sandbox/linux/clone_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIRST_SPARE_FD = 16, END_MS = 100, COUNTS_MS = 1000 };

/* --- the process --- */

static struct {
    atomic_flag is_busy;
    unsigned users;
    pid_t owner; /* whose child it is */
    pid_t pid;   /* 0: none runs */
    int pidfd;
    int control;
    pid_t ending; /* has been left, and not been waited for */
    int ending_pidfd;
} the_guard = {.is_busy = ATOMIC_FLAG_INIT};

static void guard_lock(void)
{
    while (atomic_flag_test_and_set(&the_guard.is_busy))
        sched_yield();
}

static void guard_unlock(void)
{
    atomic_flag_clear(&the_guard.is_busy);
}

char *guard_link_program(const char *launcher)
{
    static const char *const places[] = {"cordon-guard", "../../guard/cordon-guard"};
    AUTO_FREE char *here = path_parent(launcher);
    struct err ignored;

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        AUTO_FREE char *path = path_clean(here, places[i]);

        if (access(path, X_OK) == 0)
            return TAKE_PTR(path);
    }
    return program_find(GUARD_PROGRAM, &ignored);
}

struct spawn {
    const struct guard_start *start;
    int control;
    bool has_failed;
    struct err *err;
};

/* Standard input, output and error, and the control socket; -1 with errno. */
static int pass_descriptors(int control)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    /* They may stand where others have to go. */
    control = fcntl(control, F_DUPFD_CLOEXEC, FIRST_SPARE_FD);
    null = null < 0 ? -1 : fcntl(null, F_DUPFD_CLOEXEC, FIRST_SPARE_FD);
    if (control < 0 || null < 0)
        return -1;
    for (int fd = 0; fd < 3; fd++)
        if (dup2(null, fd) < 0) /* allow dup2: the guard's own */
            return -1;
    return dup2(control, GUARD_CONTROL_FD); /* allow dup2: it is inherited */
}

/* All signals stay blocked: what a terminal sends to us is not meant for the guard, which the
 * commands need until their end. */
ON_OWN_STACK static int guard_child(void *argument)
{
    struct spawn *spawn = argument;
    char *const argv[] = {(char *)GUARD_PROGRAM, NULL};
    char *const env[] = {NULL};

    spawn->has_failed = true;
    if (pass_descriptors(spawn->control) < 0)
        err_sys(spawn->err, "passing the control socket to the guard");
    else if (restrict_drop(spawn->err) == 0) {
        setsid();
        /* After the capabilities are gone, because a change of those takes it away. */
        if (spawn->start->dies_with_thread)
            prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        spawn->has_failed = false;
        execve(spawn->start->program, argv, env);
        spawn->has_failed = true;
        err_sys(spawn->err, "executing %s", spawn->start->program);
    }
    _exit(1);
}

/* Waits a moment for one that has nothing left to do. */
static void reap(void)
{
    struct pollfd end = {.fd = the_guard.ending_pidfd, .events = POLLIN};

    if (!the_guard.ending)
        return;
    if (poll(&end, 1, END_MS) > 0)
        waitpid(the_guard.ending, NULL, __WALL | WNOHANG);
    close(the_guard.ending_pidfd);
    the_guard.ending = 0;
}

/* Lets go of the one that runs: it ends when its commands have ended. */
static void leave(void)
{
    if (!the_guard.pid)
        return;
    close(the_guard.control);
    if (the_guard.owner == getpid()) {
        reap();
        the_guard.ending = the_guard.pid;
        the_guard.ending_pidfd = the_guard.pidfd;
    } else {
        close(the_guard.pidfd);
    }
    the_guard.pid = 0;
}

static int start(const struct guard_start *start, struct err *err)
{
    struct spawn spawn = {.start = start, .err = err};
    sigset_t all, old;
    int pair[2];

    if (sys_fault() || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return err_sys(err, "making the guard's control socket");
    spawn.control = pair[1];
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    the_guard.pid = clone_child(guard_child, &spawn, CLONE_PIDFD, &the_guard.pidfd);
    if (the_guard.pid < 0)
        err_sys(err, "starting the guard");
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    close(pair[1]);
    if (the_guard.pid > 0 && spawn.has_failed) {
        waitpid(the_guard.pid, NULL, __WALL);
        close(the_guard.pidfd);
        the_guard.pid = -1;
    }
    if (the_guard.pid < 0) {
        the_guard.pid = 0;
        close(pair[0]);
        return -1;
    }
    the_guard.owner = getpid();
    the_guard.control = pair[0];
    return 0;
}

void guard_link_join(void)
{
    guard_lock();
    the_guard.users++;
    guard_unlock();
}

void guard_link_leave(void)
{
    guard_lock();
    if (--the_guard.users == 0)
        leave();
    guard_unlock();
}

void guard_link_reap(void)
{
    guard_lock();
    reap();
    guard_unlock();
}

/* --- a channel --- */

enum { STDIO = 3 };

struct told {
    struct list in_queue;
    const char **argv;
    int stdio[STDIO];
    struct guard_fact fact; /* up to the end of its strings */
};

/* The arguments lie behind two paths. */
static const char **split_argv(const struct guard_fact *fact, const char *end)
{
    const char *at = fact->strings + strlen(fact->strings) + 1;
    const char **argv;
    uint32_t argc = 0;

    if (!fact->argc || fact->argc > GUARD_ARGV_MAX)
        return alloc_zero(1, sizeof *argv);
    argv = alloc_zero(fact->argc + 1, sizeof *argv);
    for (at += strlen(at) + 1; at < end && argc < fact->argc; at += strlen(at) + 1)
        argv[argc++] = at;
    return argv;
}

/* Four strings have to end within the packet, or right behind it. */
static struct told *told_new(const struct guard_fact *packet, size_t len, const int *fds,
                             size_t count)
{
    struct told *told = alloc_zero(1, offsetof(struct told, fact) + len + 4);
    size_t used = 0;

    memcpy(&told->fact, packet, len);
    told->argv = split_argv(&told->fact, (const char *)&told->fact + len);
    for (int i = 0; i < STDIO; i++)
        told->stdio[i] = (packet->flags & GUARD_FLAG_STDIO << i) && used < count ? fds[used++] : -1;
    pass_close(fds + used, count - used);
    return told;
}

static void told_free(struct told *told)
{
    for (int i = 0; told && i < STDIO; i++)
        auto_close(&told->stdio[i]);
    if (told)
        free(told->argv);
    free(told);
}

struct guard_channel {
    int fd;
    int guards; /* the guard's end, until it has been handed over */
    struct list queue;
    struct told *last; /* that was given out */
    unsigned count;
    bool has_more, has_ended, is_broken;
};

struct guard_channel *guard_channel_new(struct err *err)
{
    struct guard_channel *channel;
    int pair[2];

    if (sys_fault() || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
        err_sys(err, "making the guard's channel");
        return NULL;
    }
    channel = alloc_zero(1, sizeof *channel);
    channel->fd = pair[0];
    channel->guards = pair[1];
    list_init(&channel->queue);
    return channel;
}

void guard_channel_free(struct guard_channel *channel)
{
    struct told *told, *following;

    if (!channel)
        return;
    list_for_each_safe(told, following, &channel->queue, in_queue)
        told_free(told);
    told_free(channel->last);
    close(channel->fd);
    if (channel->guards >= 0)
        close(channel->guards);
    free(channel);
}

int guard_channel_fd(const struct guard_channel *channel)
{
    return channel->fd;
}

/* -1 with errno */
static int send_hello(int channel, int map, uint32_t flags)
{
    const int fds[GUARD_FDS] = {[GUARD_FD_CHANNEL] = channel, [GUARD_FD_MAP] = map};
    const struct guard_hello hello = {
        .magic = GUARD_MAGIC, .version = GUARD_VERSION, .flags = flags};

    return pass_send(the_guard.control, &hello, sizeof hello, fds, GUARD_FDS);
}

static int attach(struct guard_channel *channel, const struct guard_start *how, struct err *err)
{
    if (the_guard.pid && the_guard.owner != getpid())
        leave();
    for (int i = 0; i < 2; i++) {
        if (!the_guard.pid && start(how, err))
            return -1;
        if (!sys_fault() && send_hello(channel->guards, how->map, how->flags) == 0)
            return 0;
        if (errno != EPIPE && errno != ECONNRESET)
            break;
        leave(); /* it has died */
    }
    return err_sys(err, "handing the command to the guard");
}

int guard_channel_attach(struct guard_channel *channel, const struct guard_start *how,
                         struct err *err)
{
    int status;

    guard_lock();
    status = attach(channel, how, err);
    guard_unlock();
    close(channel->guards);
    channel->guards = -1;
    return status;
}

void guard_channel_send(const struct guard_channel *channel, const struct guard_order *order)
{
    while (send(channel->fd, order, sizeof *order, MSG_NOSIGNAL) < 0 && errno == EINTR)
        continue;
}

/* Takes one packet; false when there is none. A guard that has let go of a command while an order of ours was
 * under way resets the socket, which is told before what it had to say. */
static bool receive(struct guard_channel *channel)
{
    struct guard_fact packet;
    int fds[PASS_MAX];
    size_t count;
    ssize_t len;

    do
        len = pass_receive(channel->fd, &packet, sizeof packet, MSG_DONTWAIT, fds, &count);
    while (len < 0 && (errno == EINTR || errno == ECONNRESET));
    if (len < 0 && errno == EAGAIN)
        return false;
    if (len < (ssize_t)offsetof(struct guard_fact, strings)) { /* its end, or nothing of ours */
        pass_close(fds, count);
        channel->has_ended = channel->is_broken = true;
        return false;
    }
    if (packet.kind == GUARD_FACT_END) {
        channel->has_ended = true;
        return false;
    }
    channel->count++;
    channel->has_more |= packet.kind == GUARD_FACT_MORE || packet.kind == GUARD_FACT_LOST ||
                         packet.kind == GUARD_FACT_EXEC || packet.kind == GUARD_FACT_ASKED;
    list_append(&channel->queue, &told_new(&packet, (size_t)len, fds, count)->in_queue);
    return true;
}

const struct guard_fact *guard_channel_next(struct guard_channel *channel)
{
    if (!list_first(&channel->queue, struct told, in_queue) && !channel->has_ended)
        receive(channel);
    told_free(channel->last);
    channel->last = list_first(&channel->queue, struct told, in_queue);
    if (!channel->last)
        return NULL;
    list_remove(&channel->last->in_queue);
    return &channel->last->fact;
}

const char *const *guard_channel_argv(const struct guard_channel *channel)
{
    return channel->last->argv;
}

void guard_channel_take_stdio(struct guard_channel *channel, int ret_fds[STDIO])
{
    for (int i = 0; channel->last && i < STDIO; i++) {
        ret_fds[i] = channel->last->stdio[i];
        channel->last->stdio[i] = -1;
    }
}

void guard_channel_finish(struct guard_channel *channel, bool lingers)
{
    struct pollfd end = {.fd = channel->fd, .events = 0}; /* POLLHUP comes unasked */

    while (!channel->has_ended && receive(channel))
        continue;
    if (channel->has_ended || lingers || (!channel->has_more && channel->count < GUARD_FACTS_MAX))
        return;
    poll(&end, 1, COUNTS_MS);
    while (!channel->has_ended && receive(channel))
        continue;
}

bool guard_channel_is_broken(const struct guard_channel *channel)
{
    return channel->is_broken;
}
