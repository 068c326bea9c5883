/* See wake.h. Waking the caller on our own processor makes two programs that take turns as fast as one, and
 * slows down those that work side by side. So it is switched on for a command while it asks often.
 *
 * The switch does not hold for a descriptor, which the caller is woken to take: it wakes up on a processor
 * that is idle, if there is one, and calls from there the next time, so that both hop to and fro. On a virtual
 * machine each hop costs several times what the call does. So when they are seen to hop, both are kept on our
 * processor for some calls: the caller from before until after it has its descriptor, and only then its
 * answer, so that it sees nothing of that; we for a moment longer, because it will call again.
 *
 * Who may not be moved is not. A command that sets the processors of a thread, its own or another's, could do that
 * while we have moved it, and what it set would be lost. So that call is asked about, and from then on none of its
 * threads is moved: there is none that we have moved while we answer it. (Somebody outside who sets the mask of a
 * thread in these microseconds may find it undone.) Should the guard die in between, its commands are ended. */
#include "guard/wake.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>

/* Measured: make -j2 loses by the wake-up, tar and cp win. */
#define WINDOW_NS 5000000u
enum { BUSY_CALLS = 20 };

/* They hop if so many of that many calls found us on another processor than the one before; which is not
 * seen while they are kept, so then it is for a number of calls. */
enum { HOPS = 3, HOPS_AMONG = 8, KEPT_CALLS = 2048 };

static struct {
    cpu_set_t all; /* where we may run, when we are not kept anywhere */
    int count;     /* of them; 0: not known yet */
    bool has_most; /* nobody has restricted us to them: there are no more here */
    int was_on;    /* at the call before */
    int kept_on;   /* -1: nowhere */
    uint64_t since_ns;
} own = {.kept_on = -1};

/* Whoever has all that there is gets all that there will be. */
static void set_mask(pid_t thread, cpu_set_t mask)
{
    if (own.has_most && CPU_EQUAL(&mask, &own.all))
        memset(&mask, 0xff, sizeof mask);
    sched_setaffinity(thread, sizeof mask, &mask);
}

static void go_free(void)
{
    if (own.kept_on >= 0)
        set_mask(0, own.all);
    own.kept_on = -1;
}

/* Where we may run, as whoever started us may have restricted it (taskset(1)). */
static void look_where(void)
{
    cpu_set_t most;

    own.count = 1;
    if (sched_getaffinity(0, sizeof own.all, &own.all))
        return;
    memset(&most, 0xff, sizeof most);
    own.has_most = sched_setaffinity(0, sizeof most, &most) == 0 &&
                   sched_getaffinity(0, sizeof most, &most) == 0 && CPU_EQUAL(&most, &own.all);
    if (!own.has_most)
        sched_setaffinity(0, sizeof own.all, &own.all);
    own.count = CPU_COUNT(&own.all);
}

void wake_in_child(void)
{
    go_free();
}

static void look(struct command *command)
{
    const int here = sched_getcpu();

    command->hops = (command->hops << 1 | (here != own.was_on)) & ((1u << HOPS_AMONG) - 1);
    own.was_on = here;
    if (command->kept_calls)
        command->kept_calls--;
    else if (__builtin_popcount(command->hops) >= HOPS)
        command->kept_calls = KEPT_CALLS;
}

void wake_count(struct command *command)
{
    uint64_t now;

    if (own.kept_on >= 0 && now_ns() - own.since_ns > WINDOW_NS)
        go_free();
    look(command);
    if (++command->calls % BUSY_CALLS)
        return;
    now = now_ns();
    if ((now - command->window_ns < WINDOW_NS) != command->is_sync) {
        command->is_sync = !command->is_sync;
        ioctl(command->listener, (int)K_SECCOMP_IOCTL_NOTIF_SET_FLAGS,
              command->is_sync ? K_SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP : 0);
    }
    command->window_ns = now;
}

/* We stay where we are. Where that is, or -1: there is nowhere else to go. */
static int stay(void)
{
    int here = sched_getcpu();
    cpu_set_t one;

    if (!own.count)
        look_where();
    if (own.count == 1 || here < 0 || here >= CPU_SETSIZE)
        return -1;
    if (own.kept_on == here)
        return here;
    CPU_ZERO(&one);
    CPU_SET(here, &one);
    if (sched_setaffinity(0, sizeof one, &one))
        return -1;
    own.kept_on = here;
    own.since_ns = now_ns();
    return here;
}

void wake_leave(struct command *command)
{
    command->moves_threads = true;
}

bool wake_keeps(const struct request *request)
{
    const struct command *command = request->command;

    return command->is_sync && command->kept_calls && !command->moves_threads && stay() >= 0;
}

int wake_to_take(const struct request *request, const struct k_seccomp_notif_addfd *add)
{
    bool is_kept = !(add->flags & K_SECCOMP_ADDFD_FLAG_SEND) && wake_keeps(request);
    cpu_set_t theirs, one, now;
    int number, error;

    CPU_ZERO(&one);
    if (is_kept)
        CPU_SET(own.kept_on, &one);
    is_kept = is_kept && sched_getaffinity(request->thread, sizeof theirs, &theirs) == 0 &&
              CPU_ISSET(own.kept_on, &theirs) && CPU_COUNT(&theirs) > 1 &&
              sched_setaffinity(request->thread, sizeof one, &one) == 0;
    number = ioctl(request->command->listener, (int)K_SECCOMP_IOCTL_NOTIF_ADDFD, add);
    if (!is_kept)
        return number;
    error = errno;
    /* whoever was moved meanwhile by somebody else stays there */
    if (sched_getaffinity(request->thread, sizeof now, &now) == 0 && CPU_EQUAL(&now, &one))
        set_mask(request->thread, theirs);
    errno = error;
    return number;
}
