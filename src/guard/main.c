/* cordon-guard: the supervisor of the sandboxes of one host process. It runs outside of them, as the
 * same user, and answers the system calls that their seccomp filters ask about.
 *
 *     host -> control socket -> a command: its channel and its map
 *     launcher -> channel -> the listener of its filter
 *     listener -> calls, one at a time, taken and answered
 *     /dev/fuse -> accesses to a denied place, answered
 *
 * It is a program of its own: what it reads comes from hostile processes, and the host's memory has
 * tokens and other commands' output. It has no privilege that the commands lack. One loop, no threads.
 * It ends with the control socket and every command's channel closed. */
#include "guard/listener.h"
#include "guard/points.h"

#include "base/pass.h"
#include "base/sys.h"
#include "guard/exec.h"
#include "guard/outside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS_MAX = 64 };

static int poller = -1;
static unsigned commands;
static bool is_closed; /* the host is gone */

enum source { CHANNEL, LISTENER, ENDS, POINTS, EXECS, SOURCE_STEP = 8 };

/* What an event is about: the command's pointer, and the source in its lowest bits. */
static bool watch(int fd, struct command *command, enum source source)
{
    struct epoll_event event = {.events = EPOLLIN};

    event.data.u64 = (uintptr_t)command + source;
    return epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* Before it is closed: a child that was just forked has it, too, for a moment, and what is open somewhere stays watched. */
static void unwatch(int fd)
{
    if (fd >= 0)
        epoll_ctl(poller, EPOLL_CTL_DEL, fd, NULL);
}

static void leave(struct command *command)
{
    unwatch(command->channel);
    unwatch(command->listener);
    unwatch(command_ends(command));
    unwatch(points_events(command));
    unwatch(command->execs.poller);
    command_free(command);
    commands--;
}

/* Nobody can ask any more; how the last processes have ended is told when they are reaped. */
static void end(struct command *command)
{
    unwatch(command->listener);
    if (command->listener >= 0)
        close(command->listener);
    command->listener = -1;
    command->has_ended = true;
    if (exec_is_over(command))
        leave(command);
}

/* Takes the next command. */
static void read_control(void)
{
    struct guard_hello hello = {0};
    struct command *command;
    int fds[PASS_MAX];
    size_t count, wanted;
    ssize_t len = pass_receive(GUARD_CONTROL_FD, &hello, sizeof hello, MSG_DONTWAIT, fds, &count);

    if (len < 0 && (errno == EAGAIN || errno == EINTR || errno == EMFILE))
        return;
    if (len <= 0) {
        is_closed = true;
        epoll_ctl(poller, EPOLL_CTL_DEL, GUARD_CONTROL_FD, NULL);
        return;
    }
    wanted = hello.flags & GUARD_HELLO_OUTSIDE ? GUARD_FDS : GUARD_FD_OUTSIDE;
    if (len != (ssize_t)sizeof hello || hello.magic != GUARD_MAGIC ||
        hello.version != GUARD_VERSION || count != wanted) {
        pass_close(fds, count);
        return;
    }
    command = command_new(fds, hello.flags);
    if (!command)
        return;
    commands++;
    if (!watch(command->channel, command, CHANNEL) ||
        (command_ends(command) >= 0 && !watch(command_ends(command), command, ENDS)) ||
        (command->execs.poller >= 0 && !watch(command->execs.poller, command, EXECS)))
        leave(command);
}

static void read_channel(struct command *command)
{
    bool had_listener = command->listener >= 0;
    bool had_points = points_events(command) >= 0;

    if (!command_read_channel(command) ||
        (!had_listener && command->listener >= 0 && !watch(command->listener, command, LISTENER)) ||
        (!had_points && points_events(command) >= 0 &&
         !watch(points_events(command), command, POINTS)))
        leave(command);
}

static void handle(const struct epoll_event *event)
{
    const uintptr_t bits = (uintptr_t)event->data.u64;
    struct command *command;

    if (!bits) {
        read_control();
        return;
    }
    command = (struct command *)(bits - bits % SOURCE_STEP); /* as watch() had it */
    if (bits % SOURCE_STEP == CHANNEL) {
        read_channel(command);
    } else if (bits % SOURCE_STEP == ENDS) {
        command_look(command);
    } else if (bits % SOURCE_STEP == POINTS) {
        points_serve(command);
    } else if (bits % SOURCE_STEP == EXECS) {
        exec_look(command);
        if (command->has_ended && exec_is_over(command))
            leave(command);
    } else if (event->events & EPOLLIN ? !command_serve(command)
                                       : (event->events & EPOLLHUP) != 0) {
        end(command); /* EPOLLERR alone is a signal to us while the kernel looked */
    }
}

/* One event at a time: what is done about one may free what the next is about. */
static int run(void)
{
    struct epoll_event event;

    while (!is_closed || commands) {
        int count = epoll_wait(poller, &event, 1, -1);

        if (count < 0 && errno != EINTR)
            return 1;
        if (count > 0)
            handle(&event);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct rlimit limit;

    if (!argc || !*argv[0]) /* in the place of a program that runs outside (outside.c) */
        return outside_main();
    sys_close_range(GUARD_CONTROL_FD + 1, ~0u, 0);
    signal(SIGPIPE, SIG_IGN);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || chdir("/"))
        return 1;
    poller = epoll_create1(EPOLL_CLOEXEC);
    if (poller < 0 || !watch(GUARD_CONTROL_FD, NULL, CHANNEL))
        return 1;
    return run();
}
