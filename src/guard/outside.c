/* See outside.h. The kernel has one way to become another program, which is an exec by the process
 * itself. So the caller's own call is repeated with other registers:
 *
 *     the call is held -> PTRACE_SEIZE, PTRACE_INTERRUPT -> answered with ERESTARTNOINTR
 *     -> the caller stops on its way out -> the registers say execveat(stub, "", AT_EMPTY_PATH)
 *     -> it goes on, and the kernel repeats "the call"
 *
 * No byte of the caller's memory is written, which it may share with the parent that made it by vfork:
 * the empty path is the NUL at the end of the path that was there, and there are no arguments. The
 * stub is this program. It asks for its socket by a call that means nothing else, so no descriptor
 * stands open before its image does: what another thread of the caller's does with registers, memory or
 * descriptors decides whether the stub runs, never what runs outside, and without a stub nothing
 * does. */
#include "guard/outside.h"

#include "base/auto.h"
#include "base/sys.h"
#include "guard/child.h"
#include "guard/remote.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* include/linux/errno.h: "repeat the call", never seen by programs */
enum { RESTART = 513 };

/* linux/memfd.h, Linux 6.3 */
#define MEMFD_EXEC 0x10u

/* --- the program --- */

static int program = -1;
static struct stat program_stat;

/* In memory, since the command may not be allowed to execute what lies on a disk. */
static int copy_self(void)
{
    AUTO_CLOSE int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    AUTO_CLOSE int copy =
        memfd_create("cordon-outside", MFD_CLOEXEC | MFD_ALLOW_SEALING | MEMFD_EXEC);
    char path[32];
    struct stat st;

    if (copy < 0 && errno == EINVAL)
        copy = memfd_create("cordon-outside", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (self < 0 || copy < 0 || fstat(self, &st))
        return -1;
    while (lseek(copy, 0, SEEK_CUR) < st.st_size)
        if (sendfile(copy, self, NULL, (size_t)st.st_size) <= 0)
            return -1;
    if (fchmod(copy, 0555) ||
        fcntl(copy, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL))
        return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", copy);
    return open(path, O_RDONLY | O_CLOEXEC);
}

int outside_program(void)
{
    if (program < 0)
        program = copy_self();
    if (program >= 0 && fstat(program, &program_stat)) {
        close(program);
        program = -1;
    }
    return program;
}

bool outside_is_stub(const struct request *request)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof path, "/proc/%d/exe", (int)request->thread);
    return request->notif->data.nr == SYS_execve && !request->notif->data.args[0] && program >= 0 &&
           stat(path, &st) == 0 && st.st_dev == program_stat.st_dev &&
           st.st_ino == program_stat.st_ino;
}

/* --- the move --- */

bool outside_is_move(const struct request *request, int fd)
{
    const struct k_seccomp_data *data = &request->notif->data;
    char text[2];

    return data->nr == SYS_execveat && (int)data->args[0] == fd && data->args[4] == AT_EMPTY_PATH &&
           !data->args[2] && remote_text(request->thread, data->args[1], text, sizeof text) == 0;
}

/* The registers of the call, as it will be repeated: x86_64 goes back to it when it leaves the stop,
 * aarch64 has done so already. false: this is no stop on the way out of a call to be repeated. */
static bool set_registers(pid_t thread, int fd, uint64_t empty)
{
#if defined(__aarch64__)
    struct user_regs_struct registers;
    struct iovec vector = {.iov_base = &registers, .iov_len = sizeof registers};

    if (ptrace(PTRACE_GETREGSET, thread, (void *)NT_PRSTATUS, &vector) ||
        (registers.regs[8] != SYS_execve && registers.regs[8] != SYS_execveat))
        return false;
    registers.regs[8] = SYS_execveat;
    registers.regs[0] = (uint64_t)fd;
    registers.regs[1] = empty;
    registers.regs[2] = registers.regs[3] = 0;
    registers.regs[4] = AT_EMPTY_PATH;
    return ptrace(PTRACE_SETREGSET, thread, (void *)NT_PRSTATUS, &vector) == 0;
#else
    struct user_regs_struct registers;
    struct iovec vector = {.iov_base = &registers, .iov_len = sizeof registers};

    if (ptrace(PTRACE_GETREGSET, thread, (void *)NT_PRSTATUS, &vector) ||
        (registers.orig_rax != SYS_execve && registers.orig_rax != SYS_execveat) ||
        registers.rax != (unsigned long long)-RESTART)
        return false;
    registers.orig_rax = SYS_execveat;
    registers.rdi = (unsigned long long)fd;
    registers.rsi = empty;
    registers.rdx = registers.r10 = 0;
    registers.r8 = AT_EMPTY_PATH;
    return ptrace(PTRACE_SETREGSET, thread, (void *)NT_PRSTATUS, &vector) == 0;
#endif
}

static int answer(const struct request *request, int error)
{
    const struct k_seccomp_notif_resp response = {.id = request->notif->id, .error = -error};

    return ioctl(request->command->listener, (int)K_SECCOMP_IOCTL_NOTIF_SEND, &response);
}

/* Whatever fails here: the caller gets EACCES, or, when it was let go already, repeats the call that
 * it had made, which is asked about anew. */
static int move(const struct request *request, int fd, uint64_t empty)
{
    const pid_t thread = request->thread;
    int status, error;
    int signal;

    if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) || ptrace(PTRACE_INTERRUPT, thread, NULL, NULL)) {
        error = errno;
        answer(request, EACCES);
        return error;
    }
    if (answer(request, RESTART))
        return ESRCH;
    while (waitpid(thread, &status, __WALL) < 0)
        if (errno != EINTR)
            return ESRCH;
    if (!WIFSTOPPED(status))
        return ESRCH;
    error = set_registers(thread, fd, empty) ? 0 : ESRCH;
    /* a signal that came in between is still to be delivered */
    signal = status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
    return ptrace(PTRACE_DETACH, thread, NULL, (void *)(intptr_t)signal) ? ESRCH : error;
}

pid_t outside_move(const struct request *request, int fd)
{
    const uint64_t path = request_argument(request, request->call->path);
    char text[PATH_MAX];
    int len = remote_text(request->thread, path, text, sizeof text);
    pid_t child;

    if (len < 0) {
        errno = EFAULT;
        return -1;
    }
    child = child_fork(&request->command->listener, 1);
    if (child == 0)
        _exit(move(request, fd, path + (uint64_t)len));
    return child;
}

/* --- the stub --- */

static const int passed[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGUSR1, SIGUSR2,
                             SIGALRM, SIGTERM, SIGCONT, SIGTSTP, SIGWINCH};

/* Those that the caller would have let its program get: not blocked, not ignored. */
static sigset_t block_signals(void)
{
    sigset_t before, wanted;

    sigprocmask(SIG_BLOCK, NULL, &before);
    sigemptyset(&wanted);
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
        struct sigaction action;

        if (!sigismember(&before, passed[i]) && sigaction(passed[i], NULL, &action) == 0 &&
            action.sa_handler != SIG_IGN)
            sigaddset(&wanted, passed[i]);
    }
    sigprocmask(SIG_BLOCK, &wanted, NULL);
    return wanted;
}

static void pass_signal(int signals, int host)
{
    struct signalfd_siginfo info;
    int number;

    if (read(signals, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    number = (int)info.ssi_signo;
    send(host, &number, sizeof number, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (number == SIGTSTP)
        raise(SIGSTOP); /* whoever waits for us is to see it */
}

/* A guard that closes its end with a signal of ours unread resets the socket, which is told before its
 * last word. */
static bool read_status(int host, int *ret)
{
    ssize_t len;

    do
        len = recv(host, ret, sizeof *ret, 0);
    while (len < 0 && (errno == EINTR || errno == ECONNRESET));
    return len == (ssize_t)sizeof *ret;
}

enum { LOST = 137 }; /* as if it had been killed */

/* Ends as the status says. */
static int end_like(int status)
{
    sigset_t one;

    if (!WIFSIGNALED(status))
        return WIFEXITED(status) ? WEXITSTATUS(status) : LOST;
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* it has dumped its core */
    signal(WTERMSIG(status), SIG_DFL);
    sigemptyset(&one);
    sigaddset(&one, WTERMSIG(status));
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
}

int outside_main(void)
{
    const sigset_t wanted = block_signals();
    const int host = (int)syscall(SYS_execve, NULL, NULL, NULL); /* outside_is_stub() */
    struct pollfd fds[] = {{.fd = host, .events = POLLIN}, {.events = POLLIN}};
    int status;

    if (host < 0)
        return 126;
    for (int fd = 0; fd < 3;
         fd++) /* what runs outside has them, and decides when they are closed */
        if (fd != host)
            close(fd);
    fds[1].fd = signalfd(-1, &wanted, SFD_CLOEXEC);
    for (;;) {
        const int ready = poll(fds, 2, -1);

        if (ready < 0 && errno == EINTR)
            continue;
        if (ready > 0 && fds[1].revents)
            pass_signal(fds[1].fd, host);
        if (ready < 0 || fds[0].revents) /* the limit of descriptors (prlimit(2)) is poll's, too */
            return read_status(host, &status) ? end_like(status) : LOST;
    }
}
