/* The init waits on two descriptors: its signals (a child ended; somebody outside wants the
 * command interrupted) and the status socket (a signal to pass on; or the caller is gone, and then
 * everything here has to go as well, however the caller ended).
 *
 * With a pid namespace one kill(-1) reaches everything, and if the init itself is killed the
 * kernel does the same. Without one, the init is a subreaper: what its descendants leave behind
 * becomes its child and is killed one generation after the other.
 */
#include "launch/init.h"

#include "base/auto.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int signal_fd = -1;

int init_signals(struct err *err)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_fd < 0)
        return err_sys(err, "watching signals");
    return 0;
}

/* In a pid namespace of our own the parent has no number; the socket tells whether it is there. */
bool init_follow_parent(void)
{
    char byte;

    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    return recv(PLAN_STATUS_FD, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) != 0;
}

void init_report(const struct plan_message *message)
{
    while (send(PLAN_STATUS_FD, message, sizeof *message, MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
}

/* Kills every direct child; true when there was one. Children of the dead become ours. */
static bool kill_children(void)
{
    AUTO_CLOSE int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    char text[4096];
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    bool found = false;
    char *next = text;

    if (len <= 0)
        return false;
    text[len] = '\0';
    for (char *end; *next; next = end) {
        long pid = strtol(next, &end, 10);

        if (end == next || (*end != ' ' && *end != '\0'))
            break;
        if (*end == ' ')
            end++;
        else if ((size_t)len == sizeof text - 1)
            break; /* the buffer ended inside a number */
        found |= pid > 0 && kill((pid_t)pid, SIGKILL) == 0;
    }
    return found;
}

/* Kills and reaps until no process of the sandbox is left but this one. */
static void init_clear(bool has_namespace)
{
    if (has_namespace)
        kill(-1, SIGKILL);
    for (;;) {
        if (!has_namespace)
            kill_children();
        if (waitpid(-1, NULL, 0) < 0 && errno == ECHILD)
            return;
    }
}

static void pass_signal(pid_t command, int signal, bool everything, bool has_namespace)
{
    if (!everything)
        kill(command, signal);
    else if (has_namespace)
        kill(-1, signal);
    else if (signal == SIGKILL)
        kill_children(); /* init_clear() gets the rest once the command is reaped */
    else
        kill(-command, signal);
}

/* false when the other end is gone. */
static bool init_read_status(pid_t command, bool has_namespace)
{
    struct plan_signal request;
    ssize_t len = recv(PLAN_STATUS_FD, &request, sizeof request, MSG_DONTWAIT);

    if (len == (ssize_t)sizeof request) {
        pass_signal(command, request.signal, request.everything, has_namespace);
        return true;
    }
    return len < 0 && (errno == EAGAIN || errno == EINTR);
}

static bool is_forwarded(int signal)
{
    return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT ||
           signal == SIGUSR1 || signal == SIGUSR2;
}

/* Takes every signal that waits; true when a child ended. */
static bool init_read_signals(pid_t command)
{
    struct signalfd_siginfo info;
    bool child = false;

    while (read(signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        child |= info.ssi_signo == SIGCHLD;
        if (is_forwarded((int)info.ssi_signo))
            kill(command, (int)info.ssi_signo);
    }
    return child;
}

/* Reaps what has ended; true when the command is among it. */
static bool init_reap(pid_t command, int *ret_status)
{
    bool ended = false;
    int status;

    for (;;) {
        pid_t pid = waitpid(-1, &status, WNOHANG);

        if (pid < 0 && errno == EINTR)
            continue;
        if (pid <= 0)
            return ended;
        if (pid == command) {
            *ret_status = status;
            ended = true;
        }
    }
}

static uint64_t microseconds(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

/* Of everything that was reaped. */
static void init_usage(struct plan_usage *ret)
{
    struct rusage usage;

    if (getrusage(RUSAGE_CHILDREN, &usage))
        return;
    *ret = (struct plan_usage){
        .user_us = microseconds(usage.ru_utime),
        .system_us = microseconds(usage.ru_stime),
        .memory_peak_kb = (uint64_t)usage.ru_maxrss,
        .voluntary_switches = (uint64_t)usage.ru_nvcsw,
        .involuntary_switches = (uint64_t)usage.ru_nivcsw,
        .blocks_written = (uint64_t)usage.ru_oublock,
    };
}

void init_close_rest(void)
{
    if (signal_fd > PLAN_STATUS_FD + 1)
        sys_close_range(PLAN_STATUS_FD + 1, (unsigned)signal_fd - 1, 0);
    sys_close_range((unsigned)signal_fd + 1, ~0u, 0);
}

void init_run(pid_t command, bool has_namespace)
{
    struct pollfd fds[] = {
        {.fd = signal_fd, .events = POLLIN},
        {.fd = PLAN_STATUS_FD, .events = POLLIN},
    };
    struct plan_message message = {.kind = PLAN_MESSAGE_EXITED};

    for (;;) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            break;
        if (init_read_signals(command) && init_reap(command, &message.wait_status))
            break;
        if (fds[1].revents && !init_read_status(command, has_namespace)) {
            message.wait_status = SIGKILL;
            break;
        }
    }
    init_clear(has_namespace);
    init_usage(&message.usage);
    init_report(&message);
}
