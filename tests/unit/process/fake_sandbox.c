/* See fake_sandbox.h. The init is forked, forks the command, tells what happened over the packet
 * socket in the same struct that launch_read() gives out, and takes signals from it. */
#include "fake_sandbox.h"

#include "base/alloc.h"
#include "base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct sandbox {
    struct access_map access;
};

struct request {
    int signal;
    bool everything;
};

struct fake fake;

struct sandbox *fake_sandbox(void)
{
    static struct sandbox sandbox;

    return &sandbox;
}

struct sandbox *sandbox_new(const struct sandbox_options *options, struct err *err)
{
    struct sandbox *sandbox;

    if (fake.refuses) {
        err_set(err, ERR_UNSUPPORTED, "the fake was told to refuse");
        return NULL;
    }
    sandbox = alloc_zero(1, sizeof *sandbox);
    access_map_copy(&sandbox->access, options->access);
    return sandbox;
}

void sandbox_free(struct sandbox *sandbox)
{
    if (!sandbox)
        return;
    access_map_done(&sandbox->access);
    free(sandbox);
}

const struct access_map *sandbox_access(const struct sandbox *sandbox)
{
    return &sandbox->access;
}

bool map_is_same(const struct access_map *old, const struct access_map *new)
{
    return true;
}

int sandbox_probe(struct sandbox *sandbox, struct err *err)
{
    return 0;
}

void sandbox_prepare(struct sandbox *sandbox)
{
}

bool sandbox_release_idle(struct sandbox *sandbox)
{
    return true;
}

bool sandbox_is_idle(const struct sandbox *sandbox)
{
    return false;
}

const char *sandbox_degradation(const struct sandbox *sandbox)
{
    return "";
}

const struct defence_report *sandbox_defence(const struct sandbox *sandbox, enum defence layer)
{
    static const struct defence_report partial = {DEFENCE_PARTIAL, "the fake has none"};
    static const struct defence_report whole = {DEFENCE_ENFORCED, ""};

    return fake.is_degraded && layer == DEFENCE_LANDLOCK ? &partial : &whole;
}

bool sandbox_is_degraded(const struct sandbox *sandbox)
{
    return fake.is_degraded;
}

const char *defence_name(enum defence layer)
{
    static const char *const names[DEFENCE_COUNT] = {
        "user-namespace", "mount-namespace", "pid-namespace",    "ipc-namespace",
        "net-namespace",  "uts-namespace",   "cgroup-namespace", "landlock",
        "seccomp",        "no-new-privs",    "capabilities",     "guard",
        "proxy",
    };

    return names[layer];
}

const char *defence_state_name(enum defence_state state)
{
    static const char *const names[] = {"enforced", "partial", "absent", "not-needed"};

    return names[state];
}

static void say(int status, const struct launch_report *report)
{
    while (send(status, report, sizeof *report, MSG_NOSIGNAL) < 0 && errno == EINTR)
        continue;
}

static void say_failed(int status, enum launch_stage stage, const char *what)
{
    struct launch_report report = {.event = LAUNCH_FAILED, .stage = stage};

    err_sys(&report.failure, "%s", what);
    say(status, &report);
    _exit(0);
}

/* In the command's process; only comes back to the caller's eyes as an error on `complain`. */
static void run_command(const struct launch_options *options, int complain)
{
    const char *program = options->program ? options->program : options->argv[0];
    struct err err;
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int i = 1; i < 32; i++)
        signal(i, SIG_DFL);
    for (int i = 0; i < 3; i++)
        dup2(options->stdio[i], i);
    setsid();
    if (options->controlling_tty)
        ioctl(0, TIOCSCTTY, 0);
    environ = (char **)options->env;
    if (chdir(options->cwd))
        err_sys(&err, "cwd");
    else if (execvp(program, options->argv))
        err_sys(&err, "exec");
    if (write(complain, &err, sizeof err) < 0)
        _exit(126);
    _exit(127);
}

static void pass_on(pid_t command, const struct request *request)
{
    kill(request->everything ? -command : command, request->signal);
}

static void fill_rlimits(const struct launch_limits *limits)
{
    const struct rlimit cpu = {limits->cpu_time, limits->cpu_time + 1};
    const struct rlimit size = {limits->file_size, limits->file_size};

    if (limits->cpu_time)
        setrlimit(RLIMIT_CPU, &cpu);
    if (limits->file_size)
        setrlimit(RLIMIT_FSIZE, &size);
}

/* Waits for the command, passing on what comes; the caller's end of the socket closing kills. */
static int supervise(int status, int signals, pid_t command)
{
    struct pollfd fds[] = {{.fd = status, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    struct signalfd_siginfo info;
    struct request request;
    int wait_status;

    for (;;) {
        poll(fds, 2, -1);
        if (fds[1].revents && read(signals, &info, sizeof info) > 0)
            for (pid_t pid; (pid = waitpid(-1, &wait_status, WNOHANG)) > 0;)
                if (pid == command)
                    return wait_status;
        if (!fds[0].revents)
            continue;
        if (recv(status, &request, sizeof request, MSG_DONTWAIT) == (ssize_t)sizeof request)
            pass_on(command, &request);
        else
            pass_on(command, &(struct request){SIGKILL, true});
    }
}

/* The real launcher is executed and has none of the caller's descriptors. */
static void close_others(const struct launch_options *options, int status)
{
    int last = status;

    for (int i = 0; i < 3; i++)
        last = options->stdio[i] > last ? options->stdio[i] : last;
    for (int fd = 3; fd < last; fd++)
        if (fd != status && fd != options->stdio[0] && fd != options->stdio[1] &&
            fd != options->stdio[2])
            close(fd);
    close_range((unsigned)last + 1, UINT_MAX, 0);
}

static void run_init(const struct launch_options *options, int status)
{
    struct launch_report report = {.event = LAUNCH_STARTED};
    int complain[2];
    int signals;
    sigset_t child;
    struct err err;
    pid_t command;

    close_others(options, status);
    if (fake.dies_early)
        raise(SIGKILL);
    errno = EPERM;
    if (fake.breaks_setup)
        say_failed(status, LAUNCH_STAGE_SANDBOX, "unsharing");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    fill_rlimits(&fake.limits);
    if (pipe2(complain, O_CLOEXEC))
        _exit(1);
    command = fork();
    if (command == 0)
        run_command(options, complain[1]);
    close(complain[1]);
    if (read(complain[0], &err, sizeof err) == (ssize_t)sizeof err) {
        errno = err.sys;
        say_failed(status, strstr(err.msg, "cwd") ? LAUNCH_STAGE_CWD : LAUNCH_STAGE_EXEC,
                   options->argv[0]);
    }
    for (int i = 0; i < 3; i++)
        close(options->stdio[i]);
    say(status, &report);
    report = (struct launch_report){.event = LAUNCH_EXITED};
    report.wait_status = supervise(status, signals, command);
    if (!fake.leaves_children) {
        kill(-command, SIGKILL);
        while (waitpid(-command, NULL, 0) > 0)
            continue;
    }
    getrusage(RUSAGE_CHILDREN, &report.usage);
    report.bytes_written = (uint64_t)report.usage.ru_oublock * 512;
    say(status, &report);
    _exit(0);
}

const struct resource_limits *sandbox_limits(const struct sandbox *sandbox)
{
    return &fake.asked;
}

int sandbox_launch(struct sandbox *sandbox, const struct launch_options *options,
                   struct launch *ret, struct err *err)
{
    int ends[2];
    int closed[2];
    pid_t init;
    char byte;

    fake.launches++;
    fake.limits = (struct launch_limits){0};
    if (options->limiter)
        options->limiter(options->limiter_data, 0, true, &fake.limits);
    if (fake.fails)
        return err_set(err, ERR_UNSUPPORTED, "the fake was told to fail");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) ||
        pipe2(closed, O_CLOEXEC))
        return err_sys(err, "socketpair");
    init = fork();
    if (init == 0) {
        close(ends[0]);
        run_init(options, ends[1]);
    }
    close(ends[1]);
    close(closed[1]);
    if (read(closed[0], &byte, 1) != 0) /* until it has closed what is ours, as by exec */
        return err_sys(err, "waiting for the init");
    close(closed[0]);
    fake.init = init;
    fake.facts_told = 0;
    *ret = (struct launch){
        .status = ends[0],
        .pidfd = pidfd_open(init, 0),
        .facts = fake.has_guard ? eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK) : -1,
        .has_facts = fake.has_guard && !fake.is_silent,
        .asks = fake.has_guard && !fake.is_silent && options->asks,
        .init = init,
        .sandbox = sandbox,
    };
    fake.facts_fd = ret->facts;
    return 0;
}

void fake_tell(const struct launch_fact *facts, size_t len)
{
    fake.facts = facts;
    fake.facts_len = len;
    fake.facts_told = 0;
    eventfd_write(fake.facts_fd, 1);
}

unsigned sandbox_watch(const struct sandbox *sandbox)
{
    return 0;
}

void launch_take_stdio(struct launch *launch, int ret_fds[3])
{
    ret_fds[0] = ret_fds[1] = ret_fds[2] = -1;
}

void launch_answer_exit(const struct launch *launch, uint64_t id, int wait_status)
{
}

void launch_answer(const struct launch *launch, uint64_t id, enum launch_verdict verdict)
{
    if (launch->facts >= 0 && fake.answers_len < FAKE_ANSWERS_MAX)
        fake.answers[fake.answers_len++] = (struct fake_answer){id, verdict};
}

bool launch_read_fact(struct launch *launch, struct launch_fact *ret)
{
    eventfd_t value;

    if (launch->facts < 0)
        return false;
    if (fake.facts_told < fake.facts_len) {
        *ret = fake.facts[fake.facts_told++];
        return true;
    }
    eventfd_read(launch->facts, &value);
    launch->is_unguarded = fake.guard_dies;
    return false;
}

int launch_read(struct launch *launch, struct launch_report *ret, struct err *err)
{
    ssize_t n = recv(launch->status, ret, sizeof *ret, 0);

    /* An init that ends with a signal unread resets the socket, which is told before its report. */
    if (n < 0 && errno == ECONNRESET)
        n = recv(launch->status, ret, sizeof *ret, 0);
    if (n == (ssize_t)sizeof *ret)
        return 0;
    if (n < 0 && errno != EAGAIN && errno != ECONNRESET)
        return err_sys(err, "reading the launcher's status");
    ret->event = n < 0 && errno == EAGAIN ? LAUNCH_NOTHING : LAUNCH_GONE;
    return 0;
}

pid_t launch_pid(const struct launch *launch)
{
    char path[64];
    int pid = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", launch->init, launch->init);
    file = fopen(path, "re");
    if (file && fscanf(file, "%d", &pid) != 1)
        pid = 0;
    if (file)
        fclose(file);
    return pid;
}

int launch_signal(struct launch *launch, int signal, bool everything, struct err *err)
{
    struct request request = {signal, everything};

    if (send(launch->status, &request, sizeof request, MSG_NOSIGNAL) < 0 && errno != EPIPE &&
        errno != ECONNRESET)
        return err_sys(err, "sending a signal");
    return 0;
}

bool sandbox_has_view(const struct sandbox *sandbox)
{
    return false;
}

int launch_publish(struct launch *launch, uint16_t port, int listener, struct err *err)
{
    return err_set(err, ERR_UNSUPPORTED, "a fake has no network of its own");
}

void launch_done(struct launch *launch)
{
    fake.done++;
    close(launch->status);
    waitpid(launch->init, NULL, 0);
    close(launch->pidfd);
    if (launch->facts >= 0)
        close(launch->facts);
    *launch = (struct launch){.status = -1, .pidfd = -1, .facts = -1};
}
