/* One command in a sandbox: what it needs on the host, the launcher's file, the launcher, and what
 * the launcher says.
 *
 * The first launch waits for the sandbox to stand. When it does not because the host lacks a layer,
 * nothing of the command has run, and mode auto starts over with the next weaker plan.
 */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/sys.h"
#include "sandbox/linux/sandbox_state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LIMITS_MAX = 4 };

/* Fills `ret` with the limits that are set; returns how many. */
static size_t limit_records(const struct sandbox_limits *limits, struct plan_record ret[LIMITS_MAX])
{
    const struct {
        uint64_t value;
        int resource;
    } all[LIMITS_MAX] = {
        {limits->memory, RLIMIT_AS},
        {limits->cpu_time, RLIMIT_CPU},
        {limits->processes, RLIMIT_NPROC},
        {limits->file_size, RLIMIT_FSIZE},
    };
    size_t len = 0;

    for (size_t i = 0; i < LIMITS_MAX; i++)
        if (all[i].value)
            ret[len++] = (struct plan_record){
                .op = PLAN_LIMIT, .other = (uint32_t)all[i].resource, .value = all[i].value};
    return len;
}

/* The launcher's file for one command; a descriptor. */
static int launch_plan(const struct sandbox *sandbox, const struct launch_options *options,
                       const struct launch *launch, struct err *err)
{
    AUTO(buf_done) struct buf file = {0};
    struct plan_record limits[LIMITS_MAX];
    struct plan_command command = {
        .argv = options->argv,
        .env = options->env,
        .program = options->program,
        .cwd = options->cwd,
        .absent = standins_absent(sandbox->keep_warm ? sandbox->warm : launch->standins),
        .limits = limits,
        .limits_len = limit_records(&options->limits, limits),
    };

    if (sandbox->dies_with_thread)
        command.flags |= PLAN_COMMAND_DIE_WITH_PARENT;
    if (options->is_probe)
        command.flags |= PLAN_COMMAND_PROBE;
    if (options->lingers)
        command.flags |= PLAN_COMMAND_LINGER;
    if (options->controlling_tty)
        command.flags |= PLAN_COMMAND_TTY;
    if (options->controlling_tty && (sandbox->plan->namespaces & CLONE_NEWNS))
        command.flags |= PLAN_COMMAND_CONSOLE;
    if (sandbox->plan->namespaces & CLONE_NEWPID)
        command.flags |= PLAN_COMMAND_PID_NAMESPACE;
    if (plan_encode(sandbox->plan, &command, &file, err))
        return -1;
    return fd_sealed_memory("cordon-plan", file.data, file.len, err);
}

/* Moves the init, which has started nothing yet. */
static int launch_enter_cgroup(const struct init *init, int cgroup, struct err *err)
{
    AUTO_CLOSE int fd = -1;
    char pid[16];
    int len = snprintf(pid, sizeof pid, "%d", (int)init->pid);

    if (cgroup < 0)
        return 0;
    fd = openat(cgroup, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, pid, (size_t)len) != len)
        return err_sys(err, "entering the cgroup");
    return 0;
}

/* The first packet: see sandbox/launcher/plan_format.h. */
static int launch_send(const struct init *init, const struct launch_options *options, int plan,
                       struct err *err)
{
    const int fds[PLAN_FDS] = {
        [PLAN_FD_STDIN] = options->stdio[0],
        [PLAN_FD_STDOUT] = options->stdio[1],
        [PLAN_FD_STDERR] = options->stdio[2],
        [PLAN_FD_FILE] = plan,
    };
    uint32_t magic = PLAN_MAGIC;
    struct iovec data = {.iov_base = &magic, .iov_len = sizeof magic};
    union {
        char bytes[CMSG_SPACE(sizeof fds)];
        struct cmsghdr align;
    } control = {0};
    struct msghdr message = {
        .msg_iov = &data,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof control.bytes,
    };
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);

    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof fds);
    memcpy(CMSG_DATA(rights), fds, sizeof fds);
    /* One that has failed already says why; launch_read() gets it. */
    if (sys_fault() || (sendmsg(init->status, &message, MSG_NOSIGNAL) < 0 && errno != EPIPE &&
                        errno != ECONNRESET))
        return err_sys(err, "sending the plan to the launcher");
    return 0;
}

static int launch_take_init(struct sandbox *sandbox, struct launch *launch, struct err *err)
{
    struct init *init = init_take(&sandbox->inits, sandbox->plan->namespaces, err);

    if (!init)
        return -1;
    launch->handle = init;
    launch->status = init->status;
    launch->pidfd = init->pidfd;
    launch->init = init->pid;
    return 0;
}

static int launch_command(struct sandbox *sandbox, const struct launch_options *options,
                          struct launch *launch, struct err *err)
{
    AUTO_CLOSE int plan = launch_plan(sandbox, options, launch, err);

    if (plan < 0 || launch_enter_cgroup(launch->handle, options->cgroup, err))
        return -1;
    return launch_send(launch->handle, options, plan, err);
}

/* Fresh ones for this launch, or the ones kept warm, renewed when somebody removed one. */
static int launch_standins(struct sandbox *sandbox, struct launch *launch, struct err *err)
{
    const struct plan *plan = sandbox->plan;
    struct standins **slot = sandbox->keep_warm ? &sandbox->warm : &launch->standins;

    if (*slot && standins_are_valid(*slot))
        return 0;
    standins_release(*slot);
    return standins_acquire(plan->standins, plan->standins_len, slot, err);
}

/* `ret_has_no_init`: it failed for want of an init in its namespaces, and for nothing else. */
static int launch_once(struct sandbox *sandbox, const struct launch_options *options,
                       struct launch *ret, bool *ret_has_no_init, struct err *err)
{
    struct launch launch = {
        .status = -1, .pidfd = -1, .sandbox = sandbox, .lingers = options->lingers};

    sandbox->launches++;
    /* The init comes first: it makes its namespaces while we make stand-ins and the plan's file. */
    *ret_has_no_init = launch_take_init(sandbox, &launch, err);
    if (*ret_has_no_init || launch_standins(sandbox, &launch, err) ||
        launch_command(sandbox, options, &launch, err)) {
        launch_done(&launch);
        return -1;
    }
    *ret = launch;
    return 0;
}

/* An init that ends with something of ours unread resets the socket, which is told before what the
 * init had to say (unix(7): the error is taken by the first call). */
static ssize_t receive(int status, struct plan_message *ret, int flags)
{
    ssize_t len = recv(status, ret, sizeof *ret, flags | MSG_DONTWAIT | MSG_TRUNC);

    if (len < 0 && errno == ECONNRESET)
        len = recv(status, ret, sizeof *ret, flags | MSG_DONTWAIT | MSG_TRUNC);
    return len;
}

bool launch_peek(const struct launch *launch, struct plan_message *ret)
{
    struct pollfd fd = {.fd = launch->status, .events = POLLIN};
    ssize_t len;

    while (poll(&fd, 1, -1) < 0 && errno == EINTR)
        ;
    len = receive(launch->status, ret, MSG_PEEK);
    return len == (ssize_t)sizeof *ret;
}

/* Looks how the first launch went. true when it has to be started over with a weaker plan (or, with
 * `ret_status` -1, when there is none). */
static bool launch_must_retry(struct sandbox *sandbox, struct launch *launch, int *ret_status,
                              struct err *err)
{
    struct plan_message first;

    *ret_status = 0;
    if (sandbox->host.is_proven || !launch_peek(launch, &first))
        return false;
    if (first.kind == PLAN_MESSAGE_FAILED && first.stage == PLAN_STAGE_SETUP &&
        sandbox_step_down(sandbox, (enum plan_op)first.op, &first.failure, ret_status, err)) {
        launch_done(launch);
        return true;
    }
    if (first.kind != PLAN_MESSAGE_FAILED || first.stage != PLAN_STAGE_SETUP)
        sandbox_set_proven(sandbox);
    return false;
}

int sandbox_launch(struct sandbox *sandbox, const struct launch_options *options,
                   struct launch *ret, struct err *err)
{
    for (;;) {
        struct launch launch;
        struct err failure = {0};
        bool has_no_init;
        int status = 0;

        if (launch_once(sandbox, options, &launch, &has_no_init, &failure)) {
            if (!has_no_init ||
                !sandbox_step_down(sandbox, PLAN_OP_COUNT, &failure, &status, err)) {
                *err = failure;
                return -1;
            }
        } else if (!launch_must_retry(sandbox, &launch, &status, err)) {
            *ret = launch;
            return 0;
        }
        if (status)
            return -1;
    }
}

static void report_failure(const struct plan_message *message, struct launch_report *ret)
{
    static const enum launch_stage stages[] = {
        [PLAN_STAGE_SETUP] = LAUNCH_STAGE_SANDBOX,
        [PLAN_STAGE_CWD] = LAUNCH_STAGE_CWD,
        [PLAN_STAGE_EXEC] = LAUNCH_STAGE_EXEC,
    };

    ret->event = LAUNCH_FAILED;
    ret->stage = message->stage <= PLAN_STAGE_EXEC ? stages[message->stage] : LAUNCH_STAGE_SANDBOX;
    ret->failure = message->failure;
    ret->failure.msg[sizeof ret->failure.msg - 1] = '\0';
    if (message->stage == PLAN_STAGE_SETUP && message->op < PLAN_OP_COUNT)
        err_wrap(&ret->failure, "setting the sandbox up (%s)",
                 plan_op_name((enum plan_op)message->op));
}

static struct timeval time_of(uint64_t microseconds)
{
    return (struct timeval){.tv_sec = (time_t)(microseconds / 1000000),
                            .tv_usec = (suseconds_t)(microseconds % 1000000)};
}

static void report_exit(const struct plan_message *message, struct launch_report *ret)
{
    const struct plan_usage *usage = &message->usage;

    ret->event = LAUNCH_EXITED;
    ret->wait_status = message->wait_status;
    ret->usage.ru_utime = time_of(usage->user_us);
    ret->usage.ru_stime = time_of(usage->system_us);
    ret->usage.ru_maxrss = (long)usage->memory_peak_kb;
    ret->usage.ru_nvcsw = (long)usage->voluntary_switches;
    ret->usage.ru_nivcsw = (long)usage->involuntary_switches;
    ret->usage.ru_oublock = (long)usage->blocks_written;
    ret->bytes_written = usage->blocks_written * 512; /* getrusage(2) */
}

int launch_read(struct launch *launch, struct launch_report *ret, struct err *err)
{
    struct plan_message message;
    ssize_t len = receive(launch->status, &message, 0);

    *ret = (struct launch_report){.event = LAUNCH_NOTHING};
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (len < 0 && errno != ECONNRESET)
        return err_sys(err, "reading what the launcher says");
    if (len != (ssize_t)sizeof message) {
        ret->event = LAUNCH_GONE;
    } else if (message.kind == PLAN_MESSAGE_STARTED) {
        ret->event = LAUNCH_STARTED;
    } else if (message.kind == PLAN_MESSAGE_EXITED) {
        launch->has_exited = true;
        launch->is_over = !launch->lingers;
        /* Nothing of the command is left, and the init pins what has no name any more: what it
         * takes to free that is done when it ends. */
        if (launch->is_over)
            standins_release(TAKE_PTR(launch->standins));
        report_exit(&message, ret);
    } else {
        launch->is_over = true;
        report_failure(&message, ret);
    }
    return 0;
}

/* Children are listed in the order in which they came to their parent (proc_pid_children(5)): the
 * command is the first, whatever of it the init adopts later. */
pid_t launch_pid(const struct launch *launch)
{
    AUTO_CLOSE int fd = -1;
    char path[64];
    char text[16] = "";

    if (!launch->sandbox || launch->has_exited || launch->is_over)
        return 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)launch->init, (int)launch->init);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && read(fd, text, sizeof text - 1) > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

int launch_signal(struct launch *launch, int signal, bool everything, struct err *err)
{
    struct plan_signal request = {.signal = signal, .everything = everything};

    if (send(launch->status, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
        return 0;
    if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN)
        return 0;
    return err_sys(err, "sending signal %d to the command", signal);
}

void launch_done(struct launch *launch)
{
    struct sandbox *sandbox = launch->sandbox;

    if (!sandbox)
        return;
    if (launch->handle && launch->is_over)
        init_leave(&sandbox->inits, launch->handle);
    else if (launch->handle)
        init_kill(&sandbox->inits, launch->handle, sandbox->plan->namespaces & CLONE_NEWPID);
    standins_release(launch->standins);
    *launch = (struct launch){.status = -1, .pidfd = -1};
    if (--sandbox->launches == 0 && sandbox->on_idle)
        sandbox->on_idle(sandbox->data, sandbox);
}
