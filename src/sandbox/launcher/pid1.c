/* The init waits on two descriptors: its signals (a child ended; a process outside wants the
 * command interrupted) and the status socket (a signal to pass on; or the caller is gone, and then
 * everything here has to go as well, however the caller ended).
 *
 * With a pid namespace one kill(-1) reaches everything, and if the init itself is killed the
 * kernel does the same. Without one, the init is a subreaper: what its descendants leave behind
 * becomes its child and is killed one generation after the other.
 */
#include "sandbox/launcher/pid1.h"

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
static bool is_to_clear; /* everything was to be killed: nothing lingers any more */

int pid1_signals(struct err *err)
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
bool pid1_follow_parent(void)
{
    char byte;

    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    return recv(PLAN_STATUS_FD, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) != 0;
}

void pid1_report(const struct plan_message *message)
{
    while (send(PLAN_STATUS_FD, message, sizeof *message, MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
}

/* Signals every direct child; true when there was one. Children of the dead become ours. */
static bool signal_children(int signal)
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
        found |= pid > 0 && kill((pid_t)pid, signal) == 0;
    }
    return found;
}

/* Kills and reaps until no process of the sandbox is left but this one. */
static void pid1_clear(bool has_namespace)
{
    if (has_namespace)
        kill(-1, SIGKILL);
    for (;;) {
        if (!has_namespace)
            signal_children(SIGKILL);
        if (waitpid(-1, NULL, 0) < 0 && errno == ECHILD)
            return;
    }
}

/* `command` is 0 once it has been reaped: its number may be another process's by now. */
static void pass_signal(pid_t command, int signal, bool everything, bool has_namespace)
{
    is_to_clear |= everything && signal == SIGKILL;
    if (!everything && command)
        kill(command, signal);
    else if (everything && has_namespace)
        kill(-1, signal);
    else if (everything && (signal == SIGKILL || !command))
        signal_children(signal); /* pid1_clear() gets the rest once the command is reaped */
    else if (everything)
        kill(-command, signal);
}

/* false when the other end is gone. */
static bool pid1_read_status(pid_t command, bool has_namespace)
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
static bool pid1_read_signals(pid_t command)
{
    struct signalfd_siginfo info;
    bool child = false;

    while (read(signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        child |= info.ssi_signo == SIGCHLD;
        if (command && is_forwarded((int)info.ssi_signo))
            kill(command, (int)info.ssi_signo);
    }
    return child;
}

/* Reaps what has ended; true when the command is among it. */
static bool pid1_reap(pid_t command, int *ret_status)
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
static void pid1_usage(struct plan_usage *ret)
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

void pid1_close_rest(void)
{
    if (signal_fd > PLAN_STATUS_FD + 1)
        sys_close_range(PLAN_STATUS_FD + 1, (unsigned)signal_fd - 1, 0);
    sys_close_range((unsigned)signal_fd + 1, ~0u, 0);
}

/* Waits for the command; false when the other end went first. */
static bool pid1_wait(pid_t command, bool has_namespace, int *ret_status)
{
    struct pollfd fds[] = {
        {.fd = signal_fd, .events = POLLIN},
        {.fd = PLAN_STATUS_FD, .events = POLLIN},
    };

    for (;;) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return false;
        if (pid1_read_signals(command) && pid1_reap(command, ret_status))
            return true;
        if (fds[1].revents && !pid1_read_status(command, has_namespace))
            return false;
    }
}

/* Reaps what has ended; false when nothing is left. */
static bool pid1_reap_rest(void)
{
    pid_t pid;

    do
        pid = waitpid(-1, NULL, WNOHANG);
    while (pid > 0 || (pid < 0 && errno == EINTR));
    return pid == 0;
}

/* Until what the command left behind has ended, or the other end is gone. */
static void pid1_linger(bool has_namespace)
{
    struct pollfd fds[] = {
        {.fd = signal_fd, .events = POLLIN},
        {.fd = PLAN_STATUS_FD, .events = POLLIN},
    };

    while (!is_to_clear && pid1_reap_rest()) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return;
        pid1_read_signals(0);
        if (fds[1].revents && !pid1_read_status(0, has_namespace))
            return;
    }
}

void pid1_run(pid_t command, uint32_t flags)
{
    struct plan_message message = {.kind = PLAN_MESSAGE_EXITED};
    bool has_namespace = flags & PLAN_COMMAND_PID_NAMESPACE;
    bool has_ended = pid1_wait(command, has_namespace, &message.wait_status);

    if (has_ended && (flags & PLAN_COMMAND_LINGER) && !is_to_clear) {
        pid1_usage(&message.usage);
        pid1_report(&message);
        pid1_linger(has_namespace);
        pid1_clear(has_namespace);
        return;
    }
    if (!has_ended)
        message.wait_status = SIGKILL;
    pid1_clear(has_namespace);
    pid1_usage(&message.usage);
    pid1_report(&message);
}
