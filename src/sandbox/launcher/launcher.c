/* The launcher does what the plan says, in its order, and decides nothing.
 *
 *     namespaces -> wait for the plan and the command's stdio -> check the plan -> file system
 *       -> keyring, capabilities -> start the command (limits, Landlock, seccomp in its process)
 *       -> wait, pass on, report
 *
 * It is its own small program, so that nothing of the caller's memory or environment is ever in the sandbox. It is not
 * dumpable: the command can neither trace it nor read its /proc files. The first failure ends it; nothing of the
 * command has run then.
 *
 * It may be started long before there is a command for it, with nothing but its end of the status socket, so it holds
 * nothing of its caller open meanwhile. Anything but a plan with its descriptors as the first packet there ends it.
 *
 * The command's process is born by vfork(2), so that the launcher learns from shared memory whether
 * and why the program could not be executed, without another descriptor or message.
 *
 * From then on the launcher is the command's init and waits on two descriptors: its signals (a child
 * ended; a process outside wants the command interrupted) and the status socket (a signal to pass
 * on; or the caller is gone, and then everything here has to go as well, however the caller ended).
 * With a pid namespace one kill(-1) reaches everything, and if the init itself is killed the kernel
 * does the same. Without one, the init is a subreaper: what its descendants leave behind becomes its
 * child and is killed one generation after the other.
 */
#include "sandbox/launcher/launcher.h"

#include "base/auto.h"
#include "base/pass.h"
#include "base/sys.h"
#include "sandbox/launcher/kernel.h"
#include "sandbox/launcher/mounts.h"
#include "sandbox/launcher/network.h"
#include "sandbox/launcher/numbers.h"
#include "sandbox/launcher/plan_format.h"
#include "sandbox/launcher/restrict.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct command_failure {
    enum plan_stage stage;
    uint32_t op; /* SETUP */
    struct err err;
};

enum { CHANNEL_FD = PLAN_STATUS_FD + 1, FIRST_SPARE_FD = 16 };

static int channel = -1; /* to the guard, CHANNEL_FD; -1 without */
static int way_in = -1;  /* who asks for sockets of this network; -1: nobody */

enum { INBOX_NEEDS = (1 << PLAN_FD_CHANNEL) - 1 };

/* -1 for those that did not come. */
static bool inbox_read(int ret_fds[PLAN_FDS])
{
    struct plan_inbox inbox = {0};
    int fds[PASS_MAX];
    size_t count, next = 0;
    ssize_t len;

    do
        len = pass_receive(PLAN_STATUS_FD, &inbox, sizeof inbox, 0, fds, &count);
    while (len < 0 && errno == EINTR);
    if (len != (ssize_t)sizeof inbox || inbox.magic != PLAN_MAGIC || inbox.has >> PLAN_FDS ||
        (inbox.has & INBOX_NEEDS) != INBOX_NEEDS ||
        count != (size_t)__builtin_popcount(inbox.has)) {
        pass_close(fds, count);
        return false;
    }
    for (int i = 0; i < PLAN_FDS; i++)
        ret_fds[i] = inbox.has & 1u << i ? fds[next++] : -1;
    return true;
}

/* Waits for the first packet on the status socket. false when the other end closed it, or what came is not
 * ours. The command's stdio becomes 0, 1 and 2; `ret_file` is the plan; `ret_proxy` the proxy's channel, or -1. */
static bool inbox_receive(int *ret_file, int *ret_proxy)
{
    int fds[PLAN_FDS];

    if (!inbox_read(fds))
        return false;
    /* What came may stand where something else has to go. */
    for (int i = 0; i < PLAN_FDS; i++)
        if (fds[i] >= 0 && (fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FIRST_SPARE_FD)) < 0)
            return false;
    if (fds[PLAN_FD_CHANNEL] >= 0) {
        channel = dup3(fds[PLAN_FD_CHANNEL], CHANNEL_FD, O_CLOEXEC);
        if (channel < 0)
            return false;
    }
    for (int i = PLAN_FD_STDIN; i <= PLAN_FD_STDERR; i++)
        if (dup2(fds[i], i) < 0) /* allow dup2: the command inherits these */
            return false;
    *ret_file = fds[PLAN_FD_FILE];
    *ret_proxy = fds[PLAN_FD_PROXY];
    return true;
}

enum { PATH_LIMIT = 4096 };

struct command {
    const struct plan_view *plan;
    char **argv;
    char **envp;
    pid_t init;
};

static void command_list(const struct plan_view *plan, uint32_t offset, uint32_t count, char **out)
{
    const char *text = plan_string(plan, offset);

    for (uint32_t i = 0; i < count; i++) {
        out[i] = (char *)text;
        text = plan_string_next(text);
    }
    out[count] = NULL;
}

/* Like execvpe(3), but it looks at the PATH of the command's environment. The errno of the most
 * telling failure is kept: EACCES beats ENOENT. */
static int command_execute(const char *name, const struct command *command)
{
    const char *path = "/usr/local/bin:/usr/bin:/bin"; /* without a PATH */
    char file[PATH_LIMIT];
    int failure = ENOENT;

    if (strchr(name, '/') || !*name) {
        execve(name, command->argv, command->envp);
        return errno;
    }
    for (char *const *env = command->envp; *env; env++) {
        if (strncmp(*env, "PATH=", 5) == 0) {
            path = *env + 5;
            break;
        }
    }
    for (;;) {
        size_t len = strcspn(path, ":");

        if (len + strlen(name) + 3 < sizeof file) {
            memcpy(file, path, len);
            if (len == 0)
                file[len++] = '.';
            file[len] = '/';
            memcpy(file + len + 1, name, strlen(name) + 1);
            execve(file, command->argv, command->envp);
            if (errno != ENOENT && errno != ENOTDIR)
                failure = errno;
            if (failure != ENOENT && failure != EACCES)
                return failure;
            len = strcspn(path, ":");
        }
        if (path[len] == '\0')
            return failure;
        path += len + 1;
    }
}

static int command_fail(struct command_failure *failure, enum plan_stage stage)
{
    failure->stage = stage;
    return -1;
}

/* A group in the session of its parent: one without a parent there could not be stopped by a key (it
 * would be orphaned, POSIX 3.264). While every signal is blocked a process of the background may put
 * its group into the foreground. */
static int command_join(struct err *err)
{
    if (setpgid(0, 0) || tcsetpgrp(0, getpid()))
        return err_sys(err, "putting the command into the foreground of its terminal");
    return 0;
}

static int command_lead(bool has_terminal, struct err *err)
{
    if (setsid() < 0)
        return err_sys(err, "leaving the init's session");
    if (has_terminal && ioctl(0, TIOCSCTTY, 0))
        return err_sys(err, "making the terminal the controlling one");
    return 0;
}

/* Runs in the child; only returns on failure. */
static int command_child(const struct command *command, struct command_failure *failure)
{
    const struct plan_view *plan = command->plan;
    const char *cwd = plan_string(plan, plan->header->cwd);
    const char *program = plan_string(plan, plan->header->program);
    const uint32_t flags = plan->header->flags;
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != command->init) /* the init died before it could take us along */
        _exit(127);
    if (flags & PLAN_COMMAND_STOPS ? command_join(&failure->err)
                                   : command_lead(flags & PLAN_COMMAND_TTY, &failure->err))
        return command_fail(failure, PLAN_STAGE_SETUP);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (*cwd && chdir(cwd)) {
        err_sys(&failure->err, "entering %s", cwd);
        return command_fail(failure, PLAN_STAGE_CWD);
    }
    if (restrict_command(plan, channel, &failure->op, &failure->err))
        return command_fail(failure, PLAN_STAGE_SETUP);
    if (plan->header->flags & PLAN_COMMAND_PROBE)
        _exit(0);
    program = *program ? program : command->argv[0];
    errno = command_execute(program, command);
    err_sys(&failure->err, "executing %s%s", program, strchr(program, '/') ? "" : " from PATH");
    return command_fail(failure, PLAN_STAGE_EXEC);
}

/* Starts the plan's command with its restrictions and returns its pid once its program has been
 * executed. -1 with `ret_failure` when it could not be; nothing is left then. */
static pid_t command_start(const struct plan_view *plan, struct command_failure *ret_failure)
{
    size_t pointers = (size_t)plan->header->argc + plan->header->envc + 2;
    AUTO_FREE char **lists = calloc(pointers, sizeof *lists);
    struct command command = {.plan = plan, .argv = lists, .init = getpid()};
    volatile bool has_failed = false;
    pid_t pid;

    if (!lists) {
        err_set(&ret_failure->err, ERR_LIMIT, "no memory for %zu arguments", pointers);
        return command_fail(ret_failure, PLAN_STAGE_SETUP);
    }
    command.envp = lists + plan->header->argc + 1;
    command_list(plan, plan->header->argv, plan->header->argc, command.argv);
    command_list(plan, plan->header->envp, plan->header->envc, command.envp);
    pid = vfork();
    if (pid == 0) {
        command_child(&command, ret_failure);
        has_failed = true;
        _exit(127);
    }
    if (pid < 0) {
        err_sys(&ret_failure->err, "starting a process");
        return command_fail(ret_failure, PLAN_STAGE_SETUP);
    }
    if (has_failed) {
        waitpid(pid, NULL, 0);
        return -1;
    }
    return pid;
}

/* --- the init --- */

static int signal_fd = -1;
static bool is_to_clear; /* everything was to be killed: nothing lingers any more */

/* Closes every descriptor that the command or its init has no use for, blocks every signal, and has
 * `signal_fd` deliver them. */
static int pid1_begin(struct err *err)
{
    sigset_t all;

    if (sys_close_range(channel < 0 ? CHANNEL_FD : CHANNEL_FD + 1, ~0u, 0))
        return err_sys(err, "closing descriptors");
    if (fcntl(PLAN_STATUS_FD, F_SETFD, FD_CLOEXEC))
        return err_sys(err, "keeping the status socket");
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_fd < 0)
        return err_sys(err, "watching signals");
    return 0;
}

/* Has the kernel kill this process when the thread that started it ends. false when that has
 * happened already: in a pid namespace of our own the parent has no number, but the socket tells
 * whether it is there. */
static bool pid1_follow_parent(void)
{
    char byte;

    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    return recv(PLAN_STATUS_FD, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) != 0;
}

/* Reports over PLAN_STATUS_FD. That the other end is gone is not an error. */
static void pid1_report(const struct plan_message *message)
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

/* Reaps what has ended; false when nothing is left. */
static bool pid1_reap_rest(void)
{
    pid_t pid;

    do
        pid = waitpid(-1, NULL, WNOHANG);
    while (pid > 0 || (pid < 0 && errno == EINTR));
    return pid == 0;
}

/* Kills and reaps until no process of the sandbox is left but this one. To signal all the kernel looks at
 * every process of the host, so nobody is unless somebody is left. */
static void pid1_clear(bool has_namespace)
{
    if (!pid1_reap_rest())
        return;
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
    int fds[PASS_MAX];
    size_t count;
    ssize_t len = pass_receive(PLAN_STATUS_FD, &request, sizeof request, MSG_DONTWAIT, fds, &count);

    if (count == 1 && way_in < 0)
        way_in = fds[0];
    else
        pass_close(fds, count);
    if (len == (ssize_t)sizeof request) {
        if (request.signal)
            pass_signal(command, request.signal, request.everything, has_namespace);
        return true;
    }
    return len < 0 && (errno == EAGAIN || errno == EINTR);
}

/* A socket belongs to the network that it was made in, whoever connects it later: so nobody has to come in here. It
 * needs no capability. Whoever asks never makes us wait: the other end is one that does not block. */
static void way_in_serve(void)
{
    uint8_t family = 0;
    ssize_t len = recv(way_in, &family, sizeof family, MSG_DONTWAIT);
    int fd;

    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (len != (ssize_t)sizeof family || (family != AF_INET && family != AF_INET6)) {
        close(way_in);
        way_in = -1;
        return;
    }
    fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || pass_send(way_in, &family, sizeof family, &fd, 1))
        send(way_in, &family, sizeof family, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (fd >= 0)
        close(fd);
}

/* Waits for something to do; false when that cannot be waited for. */
static bool pid1_poll(struct pollfd fds[3])
{
    fds[0] = (struct pollfd){.fd = signal_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = PLAN_STATUS_FD, .events = POLLIN};
    fds[2] = (struct pollfd){.fd = way_in, .events = POLLIN};
    if (poll(fds, 3, -1) < 0)
        return errno == EINTR;
    if (fds[2].revents)
        way_in_serve();
    return true;
}

/* Takes every signal that waits; true when a child ended. */
static bool pid1_read_signals(pid_t command)
{
    struct signalfd_siginfo info;
    bool child = false;

    while (read(signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        const int signal = (int)info.ssi_signo;

        child |= signal == SIGCHLD;
        if (command && (signal == SIGTERM || signal == SIGINT || signal == SIGHUP ||
                        signal == SIGQUIT || signal == SIGUSR1 || signal == SIGUSR2))
            kill(command, signal);
    }
    return child;
}

/* Reaps what has ended; true when the command is among it. */
static bool pid1_reap(pid_t command, uint32_t flags, int *ret_status)
{
    const struct plan_message stopped = {.kind = PLAN_MESSAGE_STOPPED};
    const int stops = flags & PLAN_COMMAND_STOPS ? WUNTRACED : 0;
    bool ended = false;
    int status;

    for (;;) {
        pid_t pid = waitpid(-1, &status, WNOHANG | stops);

        if (pid < 0 && errno == EINTR)
            continue;
        if (pid <= 0)
            return ended;
        if (WIFSTOPPED(status)) {
            if (pid == command && WSTOPSIG(status) != SIGSTOP)
                pid1_report(&stopped);
        } else if (pid == command) {
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

/* Waits for the command; false when the other end went first. */
static bool pid1_wait(pid_t command, uint32_t flags, int *ret_status)
{
    const bool has_namespace = flags & PLAN_COMMAND_PID_NAMESPACE;
    struct pollfd fds[3];

    for (;;) {
        if (!pid1_poll(fds))
            return false;
        if (pid1_read_signals(command) && pid1_reap(command, flags, ret_status))
            return true;
        if (fds[1].revents && !pid1_read_status(command, has_namespace))
            return false;
    }
}

/* Until what the command left behind has ended, or the other end is gone. */
static void pid1_linger(bool has_namespace)
{
    struct pollfd fds[3];

    while (!is_to_clear && pid1_reap_rest()) {
        if (!pid1_poll(fds))
            return;
        pid1_read_signals(0);
        if (fds[1].revents && !pid1_read_status(0, has_namespace))
            return;
    }
}

/* Until `command` ends or the other end of the status socket closes, whichever is first; then
 * kills whatever is left and reports. `flags` of enum plan_command_flag: PID_NAMESPACE, this
 * process is pid 1 of its own pid namespace, otherwise it is the subreaper of its descendants;
 * LINGER, reports first and kills nothing unless the other end wants it or closes. */
static void pid1_run(pid_t command, uint32_t flags)
{
    struct plan_message message = {.kind = PLAN_MESSAGE_EXITED};
    bool has_namespace = flags & PLAN_COMMAND_PID_NAMESPACE;
    bool has_ended = pid1_wait(command, flags, &message.wait_status);

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

/* --- carrying out the plan --- */

static struct mounts mounts; /* too large for the stack of a small program */

static int launcher_fail(const struct err *err, enum plan_stage stage, uint32_t op)
{
    struct plan_message message = {
        .kind = PLAN_MESSAGE_FAILED, .stage = stage, .op = op, .failure = *err};

    pid1_report(&message);
    return 1;
}

/* Maps the plan; the mapping stays as long as the program. */
static int launcher_read(int file, struct plan_view *ret, struct err *err)
{
    struct stat st;
    void *memory;

    if (fstat(file, &st))
        return err_sys(err, "looking at the plan");
    if (st.st_size <= 0 || st.st_size > PLAN_MAX_BYTES)
        return err_set(err, ERR_INVALID, "a plan of %lld bytes", (long long)st.st_size);
    memory = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (memory == MAP_FAILED)
        return err_sys(err, "reading the plan");
    return plan_view_init(ret, memory, (size_t)st.st_size, err);
}

static int launcher_apply(const struct plan_view *plan, const struct plan_record *record,
                          struct err *err)
{
    switch (record->op) {
    case PLAN_NAMESPACES:
    case PLAN_IDENTITY:
    case PLAN_LAYER:
    case PLAN_LOOPBACK:
    case PLAN_LEAD:
    case PLAN_REDIRECT:
    case PLAN_LIMIT:
    case PLAN_LANDLOCK:
    case PLAN_LANDLOCK_RULE:
    case PLAN_SECCOMP:
        return 0; /* done already, or put on in the command's process */
    case PLAN_PIDS:
        return numbers_limit(record->value, err);
    case PLAN_SESSION_KEYRING:
        return restrict_keyring(err);
    case PLAN_DROP:
        return restrict_drop(err);
    case PLAN_HOLD_DEVICES:
        if (plan->header->flags & PLAN_COMMAND_CONSOLE)
            mounts_hold_console(&mounts);
        __attribute__((fallthrough));
    default:
        return mounts_apply(&mounts, plan, record, err);
    }
}

/* Every record in order; on failure `ret_op` names the operation. */
static int launcher_setup(const struct plan_view *plan, uint32_t *ret_op, struct err *err)
{
    bool has_console = plan->header->flags & PLAN_COMMAND_CONSOLE;

    if (mounts_init(&mounts, err))
        return -1;
    mounts.channel = channel;
    for (uint32_t i = 0; i < plan->header->records; i++) {
        *ret_op = plan->records[i].op;
        if (*ret_op == PLAN_DROP && has_console && mounts_show_console(&mounts, err))
            return -1;
        if (launcher_apply(plan, &plan->records[i], err))
            return -1;
    }
    *ret_op = PLAN_OP_COUNT;
    return 0;
}

/* What takes no plan, and mostly is done while the caller writes it. */
static int launcher_begin(const char *hex, const char *ports, uint32_t *ret_op, struct err *err)
{
    const unsigned long by_default[8] = {0}; /* a zeroed struct is SIG_DFL on every architecture */
    unsigned long namespaces = strtoul(hex, NULL, 16);

    /* By the system call: the C library keeps signals 32 to 34 to itself, and refuses to reset them
     * when a parent ignores them (GNU make does). */
    for (int signal = 1; signal <= K_SIGNALS; signal++)
        syscall(SYS_rt_sigaction, signal, by_default, NULL, K_SIGSET_BYTES);
    *ret_op = PLAN_NAMESPACES;
    if (namespaces && unshare((int)namespaces))
        return err_sys(err, "making namespaces");
    if (getpid() == 1)                    /* of a pid namespace that was made for us */
        (void)numbers_begin(1000, 30000); /* below the least pid_max that is usual, 32768 */
    *ret_op = PLAN_LOOPBACK;
    if ((namespaces & CLONE_NEWNET) && restrict_loopback(err))
        return -1;
    *ret_op = PLAN_LEAD;
    if (ports && network_lead(ports, ret_op, err))
        return -1;
    *ret_op = PLAN_OP_COUNT;
    return 0;
}

int launcher_main(const char *namespaces, const char *ports)
{
    struct plan_message started = {.kind = PLAN_MESSAGE_STARTED};
    struct command_failure failure = {.op = PLAN_OP_COUNT};
    struct plan_view plan;
    struct err err = {0};
    bool has_namespace;
    uint32_t op = PLAN_OP_COUNT;
    int file, proxy;
    mode_t mask = umask(0); /* modes in the plan are meant as they stand */
    pid_t command;

    sys_close_range(0, PLAN_STATUS_FD - 1, 0);
    sys_close_range(PLAN_STATUS_FD + 1, ~0u, 0);
    if (launcher_begin(namespaces, ports, &op, &err))
        return launcher_fail(&err, PLAN_STAGE_SETUP, op);
    if (!inbox_receive(&file, &proxy))
        return 0; /* not needed any more */
    if (proxy >= 0 && network_hand_over(proxy, &err))
        return launcher_fail(&err, PLAN_STAGE_SETUP, PLAN_LEAD);
    if (launcher_read(file, &plan, &err) || pid1_begin(&err) || launcher_setup(&plan, &op, &err))
        return launcher_fail(&err, PLAN_STAGE_SETUP, op);
    has_namespace = plan.header->flags & PLAN_COMMAND_PID_NAMESPACE;
    /* Without a pid namespace nothing would kill the others: there the init has to see the end
     * itself. After the capabilities are gone, because a change of those takes the parent-death
     * signal away. */
    if (has_namespace && (plan.header->flags & PLAN_COMMAND_DIE_WITH_PARENT) &&
        !pid1_follow_parent())
        return 0;
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
        (!has_namespace && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))) {
        err_sys(&err, "guarding the init");
        return launcher_fail(&err, PLAN_STAGE_SETUP, op);
    }
    umask(mask);
    /* What the set-up left open, the host's tree above all. */
    if (signal_fd > CHANNEL_FD + 1)
        sys_close_range(CHANNEL_FD + 1, (unsigned)signal_fd - 1, 0);
    sys_close_range((unsigned)signal_fd + 1, ~0u, 0);
    if ((plan.header->flags & PLAN_COMMAND_STOPS) && command_lead(true, &err))
        return launcher_fail(&err, PLAN_STAGE_SETUP, op);
    command = command_start(&plan, &failure);
    if (channel >= 0)
        close(channel); /* it has to end when the guard does */
    if (command < 0)
        return launcher_fail(&failure.err, failure.stage, failure.op);
    pid1_report(&started);
    for (int fd = 0; fd < 3; fd++)
        close(fd); /* the pipes have to end when the command ends */
    pid1_run(command, plan.header->flags);
    return 0;
}
