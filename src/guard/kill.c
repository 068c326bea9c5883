/* See kill.h. Landlock lets a command signal its own processes only, which the kernel looks at last. So
 * what is refused would have worked if we may do the same: the same user, outside.
 *
 * Which processes are its own the init of the sandbox says, a child of our host as we are. What loses
 * its parent becomes that init's, so a walk upwards from each of them arrives there. The init itself is
 * outside of the domain. Where the walk gets lost nothing is told. */
#include "guard/kill.h"

#include "base/auto.h"
#include "guard/facts.h"
#include "guard/remote.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* linux/pidfd.h */
enum { PIDFD_SIGNAL_PROCESS_GROUP = 4 };

enum { SYS_PIDFD_SEND_SIGNAL = 424, LAST_SIGNAL = 64, ABOVE_MAX = 256, UNKNOWN = -1 };

struct target {
    pid_t process; /* or, negative, its group, as kill(2) has it; 0: the thread tells */
    pid_t thread;  /* 0: the whole process */
    int signal;
    uint64_t info; /* address; 0: none */
};

/* --- whom --- */

/* Of a descriptor of the caller's; 0. */
static pid_t process_of(const struct request *request, int pidfd)
{
    static const char key[] = "\nPid:";
    char path[64], text[1024];
    const char *found;
    ssize_t len;
    AUTO_CLOSE int fd = -1;

    snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", (int)request->thread, pidfd);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    len = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    text[len > 0 ? len : 0] = '\0';
    found = strstr(text, key);
    return found ? (pid_t)strtol(found + sizeof key - 1, NULL, 10) : 0;
}

static struct target read_target(const struct request *request)
{
    const uint64_t *args = request->notif->data.args;

    switch (request->call->nr) {
    case SYS_kill:
        return (struct target){.process = (pid_t)args[0], .signal = (int)args[1]};
    case SYS_tkill:
        return (struct target){.thread = (pid_t)args[0], .signal = (int)args[1]};
    case SYS_tgkill:
        return (struct target){
            .process = (pid_t)args[0], .thread = (pid_t)args[1], .signal = (int)args[2]};
    case SYS_rt_sigqueueinfo:
        return (struct target){.process = (pid_t)args[0], .signal = (int)args[1], .info = args[2]};
    case SYS_rt_tgsigqueueinfo:
        return (struct target){.process = (pid_t)args[0],
                               .thread = (pid_t)args[1],
                               .signal = (int)args[2],
                               .info = args[3]};
    default: /* pidfd_send_signal */
        return (struct target){
            .process = process_of(request, (int)args[0]) *
                       ((unsigned)args[3] == PIDFD_SIGNAL_PROCESS_GROUP ? -1 : 1),
            .signal = (int)args[1],
            .info = args[2],
        };
    }
}

/* --- whether it would have worked --- */

/* Nobody may say of a signal to another process that it comes from kill(2) or the kernel. */
static bool is_forged(const struct request *request, uint64_t address)
{
    siginfo_t info;

    return address && (remote_bytes(request->thread, address, &info, sizeof info) ||
                       info.si_code >= 0 || info.si_code == SI_TKILL);
}

/* By the kernel, which delivers no signal 0. */
static bool may_signal(const struct target *target)
{
    if (!target->thread)
        return kill(target->process, 0) == 0;
    if (!target->process)
        return syscall(SYS_tkill, target->thread, 0) == 0;
    return syscall(SYS_tgkill, target->process, target->thread, 0) == 0;
}

/* --- whose --- */

/* Most signals are, and some programs send many. */
static bool is_to_itself(const struct request *request, const struct target *target)
{
    return target->process > 0 && syscall(SYS_tgkill, target->process, request->thread, 0) == 0;
}

/* The child of our host above a process, or it itself; 0: there is none. */
static pid_t find_init(pid_t process)
{
    const pid_t host = getppid();
    pid_t parent;

    for (int i = 0; i < ABOVE_MAX && remote_process(process, &process, &parent); i++) {
        if (parent == host)
            return process;
        if (parent <= 1)
            return 0;
        process = parent;
    }
    return UNKNOWN;
}

static bool is_outside(const struct request *request, pid_t process)
{
    pid_t ours = find_init(request->thread);
    pid_t theirs = find_init(process);

    return ours > 0 && theirs != UNKNOWN && (theirs != ours || process == ours);
}

struct answer kill_call(const struct request *request)
{
    const struct target target = read_target(request);
    char name[GUARD_COMM];
    char number[32];
    pid_t process;

    /* 0 and -1 are several, the caller's own among them */
    if (target.process == -1 || (!target.process && target.thread <= 0) || target.signal < 0 ||
        target.signal > LAST_SIGNAL)
        return answer_continue();
    process = target.thread ? target.thread : abs(target.process);
    if (is_to_itself(request, &target) || !may_signal(&target) || !is_outside(request, process) ||
        is_forged(request, target.info) || !request_is_valid(request))
        return answer_continue();
    remote_name(process, name);
    snprintf(number, sizeof number, "pid %d", (int)process);
    facts_tell(request, &(struct fact){.operation = GUARD_OP_SIGNAL,
                                       .path = *name ? name : number,
                                       .entry = GUARD_NO_ENTRY,
                                       .error = EPERM});
    return answer_continue();
}
