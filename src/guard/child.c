/* See child.h. A child is reaped here alone, never by a signal, so that its number stays its own until
 * then and nobody else's process is ended. */
#include "guard/child.h"

#include "base/sys.h"
#include "guard/wake.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* Closes all but the descriptors: those of other commands are none of the child's business. */
static void keep_only(const int *fds, size_t len)
{
    unsigned next = 0;

    for (;;) {
        unsigned kept = ~0u;

        for (size_t i = 0; i < len; i++)
            if (fds[i] >= (int)next && (unsigned)fds[i] < kept)
                kept = (unsigned)fds[i];
        if (kept > next)
            sys_close_range(next, kept == ~0u ? kept : kept - 1, 0);
        if (kept == ~0u)
            return;
        next = kept + 1;
    }
}

pid_t child_fork(const int *fds, size_t fds_len)
{
    pid_t guard = getpid();
    pid_t child = fork();

    if (child)
        return child;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || getppid() != guard)
        _exit(EIO);
    keep_only(fds, fds_len);
    wake_in_child();
    return 0;
}

static void on_alarm(int signal)
{
    (void)signal; /* that it comes is enough */
}

/* Whoever has started us may have left all signals blocked. */
static bool catch_alarms(void)
{
    const struct sigaction action = {.sa_handler = on_alarm}; /* no SA_RESTART */
    sigset_t alarms;

    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    return sigaction(SIGALRM, &action, NULL) == 0 && sigprocmask(SIG_UNBLOCK, &alarms, NULL) == 0;
}

void child_interrupt_every(long milliseconds)
{
    static bool is_ready;
    const struct timeval every = {.tv_sec = milliseconds / 1000,
                                  .tv_usec = milliseconds % 1000 * 1000};
    const struct itimerval timer = {.it_interval = every, .it_value = every};

    if (!is_ready)
        is_ready = catch_alarms();
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* A slot for another child; NULL when none is free. */
static pid_t *find_slot(struct command *command)
{
    for (int i = 0; i < CHILDREN_MAX; i++) {
        pid_t *slot = &command->children[i];

        if (*slot && waitpid(*slot, NULL, WNOHANG) != 0)
            *slot = 0;
        if (!*slot)
            return slot;
    }
    return NULL;
}

bool child_has_room(const struct request *request)
{
    return find_slot(request->command);
}

bool child_remember(const struct request *request, pid_t child)
{
    pid_t *slot = find_slot(request->command);

    if (!slot)
        return false;
    *slot = child;
    return true;
}

void children_end(struct command *command)
{
    for (int i = 0; i < CHILDREN_MAX; i++) {
        if (!command->children[i])
            continue;
        kill(command->children[i], SIGKILL);
        while (waitpid(command->children[i], NULL, 0) < 0 && errno == EINTR)
            continue;
        command->children[i] = 0;
    }
}
