/* See companion.h.
 *
 * A companion is one for all threads of this process, each of which may have an engine: what is known
 * of it is changed under a lock that is held for the start of a process at most. It is no child of a
 * process that was forked from ours; that one starts one of its own.
 *
 * A dead one is found when the next command is handed to it. */
#include "sandbox/linux/companion.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/pass.h"
#include "base/path.h"
#include "base/program.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/sys.h"
#include "guard/guard_format.h"
#include "proxy/proxy_format.h"
#include "sandbox/launcher/kernel.h"
#include "sandbox/launcher/restrict.h"
#include "sandbox/linux/clone_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIRST_SPARE_FD = 16, CONTROL_FD = 3, COMPANION_FDS_MAX = 2, END_MS = 100 };

_Static_assert((int)GUARD_CONTROL_FD == (int)CONTROL_FD && (int)PROXY_CONTROL_FD == (int)CONTROL_FD,
               "where they look");

static void companion_lock(struct companion *companion)
{
    while (atomic_flag_test_and_set(&companion->is_busy))
        sched_yield();
}

static void companion_unlock(struct companion *companion)
{
    atomic_flag_clear(&companion->is_busy);
}

char *companion_program(const struct companion *companion, const char *launcher, const char *room)
{
    AUTO_FREE char *here = path_parent(launcher);
    AUTO_FREE char *built = alloc_strf("../../%s/%s", room, companion->name);
    const char *const places[] = {companion->name, built};
    struct err ignored;

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        AUTO_FREE char *path = path_clean(here, places[i]);

        if (access(path, X_OK) == 0)
            return TAKE_PTR(path);
    }
    return program_find(companion->name, &ignored);
}

struct spawn {
    const struct companion *companion;
    const struct companion_start *start;
    char *const *env;
    int control;
    bool has_failed;
    struct err *err;
};

/* Standard input, output and error, and the control socket; -1 with errno. */
static int pass_descriptors(const struct companion *companion, int control)
{
    int more[COMPANION_FDS_MAX];
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    /* They may stand where others have to go. */
    control = fcntl(control, F_DUPFD_CLOEXEC, FIRST_SPARE_FD);
    null = null < 0 ? -1 : fcntl(null, F_DUPFD_CLOEXEC, FIRST_SPARE_FD);
    if (control < 0 || null < 0)
        return -1;
    for (size_t i = 0; i < companion->more_len; i++) {
        more[i] = fcntl(companion->more[i], F_DUPFD_CLOEXEC, FIRST_SPARE_FD);
        if (more[i] < 0)
            return -1;
    }
    for (size_t i = 0; i < companion->more_len; i++)
        if (dup2(more[i], CONTROL_FD + 1 + (int)i) < 0) /* allow dup2: it is inherited */
            return -1;
    for (int fd = 0; fd < 3; fd++)
        if (dup2(null, fd) < 0) /* allow dup2: the companion's own */
            return -1;
    return dup2(control, CONTROL_FD); /* allow dup2: it is inherited */
}

/* By the system calls: the C library would change the threads of our caller, whose memory this is, too. That
 * memory stays as open to others as it was. Where there is no nobody (root of a user namespace that has no other
 * user), or root may not, it stays who we are, without a capability. */
static void become_nobody(void)
{
    const int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);

    (void)syscall(SYS_setgroups, 0, NULL);
    if (syscall(SYS_setresgid, PROXY_NOBODY, PROXY_NOBODY, PROXY_NOBODY) == 0)
        (void)syscall(SYS_setresuid, PROXY_NOBODY, PROXY_NOBODY, PROXY_NOBODY);
    prctl(PR_SET_DUMPABLE, dumpable, 0, 0, 0);
}

/* Only when it fails. Who becomes nobody may not find the way to the program any more. */
static void execute(const struct spawn *spawn, int program)
{
    char *const argv[] = {(char *)spawn->companion->name, NULL};

    if (program < 0)
        execve(spawn->start->program, argv, spawn->env);
    else
        syscall(SYS_execveat, program, "", argv, spawn->env, K_AT_EMPTY_PATH);
    err_sys(spawn->err, "executing %s", spawn->start->program);
}

/* All signals stay blocked: what a terminal sends to us is not meant for it, which the commands need until
 * their end. */
ON_OWN_STACK static int companion_child(void *argument)
{
    struct spawn *spawn = argument;
    const bool is_nobody = spawn->companion->is_nobody && geteuid() == 0;
    const int program = is_nobody ? open(spawn->start->program, O_PATH | O_CLOEXEC) : -1;

    spawn->has_failed = true;
    if (is_nobody)
        become_nobody();
    if (pass_descriptors(spawn->companion, spawn->control) < 0)
        err_sys(spawn->err, "passing the control socket to %s", spawn->companion->word);
    else if (restrict_drop(spawn->err) == 0) {
        setsid();
        /* After user and capabilities have changed, because that takes it away. */
        if (spawn->start->dies_with_thread)
            prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        spawn->has_failed = false;
        execute(spawn, program);
        spawn->has_failed = true;
    }
    _exit(1);
}

/* Waits a moment for one that has nothing left to do. */
static void reap(struct companion *companion)
{
    struct pollfd end = {.fd = companion->ending_pidfd, .events = POLLIN};

    if (!companion->ending)
        return;
    if (poll(&end, 1, END_MS) > 0)
        waitpid(companion->ending, NULL, __WALL | WNOHANG);
    close(companion->ending_pidfd);
    companion->ending = 0;
}

/* Lets go of the one that runs: it ends when its commands have ended. */
static void leave(struct companion *companion)
{
    if (!companion->pid)
        return;
    close(companion->control);
    if (companion->owner == getpid()) {
        reap(companion);
        companion->ending = companion->pid;
        companion->ending_pidfd = companion->pidfd;
    } else {
        close(companion->pidfd);
    }
    companion->pid = 0;
}

/* HTTPS_PROXY, no_proxy and their like. */
static void add_proxies(struct strv *ret)
{
    static const char end[] = "_proxy";

    for (char **pair = environ; *pair; pair++) {
        const size_t len = strcspn(*pair, "=");

        if (len >= sizeof end - 1 &&
            strncasecmp(*pair + len - (sizeof end - 1), end, sizeof end - 1) == 0)
            strv_push(ret, *pair);
    }
}

static int start(struct companion *companion, const struct companion_start *start, struct err *err)
{
    AUTO(strv_done) struct strv env = {0};
    char *const none[] = {NULL};
    struct spawn spawn = {.companion = companion, .start = start, .env = none, .err = err};
    sigset_t all, old;
    int pair[2];

    if (sys_fault() || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return err_sys(err, "making the control socket of %s", companion->word);
    if (companion->gets_proxies)
        add_proxies(&env);
    if (env.len)
        spawn.env = strv_view(&env);
    if (companion->env)
        spawn.env = companion->env;
    spawn.control = pair[1];
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    companion->pid = clone_child(companion_child, &spawn, CLONE_PIDFD, &companion->pidfd);
    if (companion->pid < 0)
        err_sys(err, "starting %s", companion->word);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    close(pair[1]);
    if (companion->pid > 0 && spawn.has_failed) {
        waitpid(companion->pid, NULL, __WALL);
        close(companion->pidfd);
        companion->pid = -1;
    }
    if (companion->pid < 0) {
        companion->pid = 0;
        close(pair[0]);
        return -1;
    }
    companion->owner = getpid();
    companion->control = pair[0];
    return 0;
}

void companion_join(struct companion *companion)
{
    companion_lock(companion);
    companion->users++;
    companion_unlock(companion);
}

void companion_leave(struct companion *companion)
{
    companion_lock(companion);
    if (--companion->users == 0)
        leave(companion);
    companion_unlock(companion);
}

void companion_reap(struct companion *companion)
{
    companion_lock(companion);
    reap(companion);
    companion_unlock(companion);
}

int companion_open(struct companion *companion, const struct companion_start *how, bool *ret_is_new,
                   struct err *err)
{
    struct pollfd end = {.events = POLLIN};
    int status = 0;

    companion_lock(companion);
    end.fd = companion->pid ? companion->pidfd : -1;
    if (companion->pid && (companion->owner != getpid() || poll(&end, 1, 0) > 0))
        leave(companion);
    *ret_is_new = !companion->pid;
    if (*ret_is_new)
        status = start(companion, how, err);
    companion_unlock(companion);
    return status;
}

static int hand(struct companion *companion, const struct companion_start *how,
                const struct companion_packet *packet, struct err *err)
{
    if (companion->pid && companion->owner != getpid())
        leave(companion);
    for (int i = 0; i < 2; i++) {
        if (!companion->pid && start(companion, how, err))
            return -1;
        if (!sys_fault() && pass_send(companion->control, packet->data, packet->len, packet->fds,
                                      packet->fds_len) == 0)
            return 0;
        if (errno != EPIPE && errno != ECONNRESET)
            break;
        leave(companion); /* it has died */
    }
    return err_sys(err, "handing the command to %s", companion->word);
}

int companion_hand(struct companion *companion, const struct companion_start *how,
                   const struct companion_packet *packet, struct err *err)
{
    int status;

    companion_lock(companion);
    status = hand(companion, how, packet, err);
    companion_unlock(companion);
    return status;
}
