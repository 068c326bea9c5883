/* See quiet.h. The signal is directed at the writing thread, so what is pending there at the end
 * and was not at the beginning is ours (POSIX 2017, write(2), EPIPE). */
#include "process/quiet.h"

#include <errno.h>
#include <time.h>

static bool is_pending(void)
{
    sigset_t pending;

    sigpending(&pending);
    return sigismember(&pending, SIGPIPE);
}

void quiet_begin(struct quiet *quiet)
{
    sigset_t pipe_only;

    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    quiet->was_pending = is_pending();
    sigprocmask(SIG_BLOCK, &pipe_only, &quiet->before);
}

void quiet_end(const struct quiet *quiet)
{
    const struct timespec at_once = {0};
    int saved = errno;
    sigset_t pipe_only;

    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    if (!quiet->was_pending && is_pending())
        sigtimedwait(&pipe_only, NULL, &at_once);
    sigprocmask(SIG_SETMASK, &quiet->before, NULL);
    errno = saved;
}
