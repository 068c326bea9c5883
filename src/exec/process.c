/* See process.h. One process is five things to wait for: what the launcher says (a packet socket),
 * the end of the command's init (a pidfd), its output and room for its input (channels.h), and
 * time. They meet in two places:
 *
 *     start --> started --> [launcher reports the end] --> [pidfd: init is gone]
 *                  |                                             |
 *               output ...................................... drain -----> on_end
 *                                                  until every reader is at its end,
 *                                                  or drain.quiet / drain.total is over
 *
 * The report says how the command ended; the pidfd says that nobody is left who could write. An
 * init that was killed never reports.
 *
 * Invariants: on_end is the last callback and the last thing its caller does, because it may free
 * the process. A PTY's slave stays open here until the pidfd fires: the master cannot see a false
 * end while the command closes and reopens its terminal (design.md 5). */
#include "exec/process.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "exec/channels.h"
#include "exec/drain.h"
#include "exec/process_end.h"
#include "loop/loop.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct process {
    struct loop *loop;
    const struct process_events *events;
    void *data;
    struct channels channels;
    struct launch launch;
    struct loop_watch *status_watch;
    struct loop_watch *pidfd_watch;
    struct loop_timer *kill_timer;
    struct drain drain;
    uint64_t kill_at_ns; /* 0: not terminating */
    bool is_launched;    /* `launch` has to be done */
    bool has_started;
    bool is_killed;  /* by us, with everything */
    bool has_report; /* `end` says how; nothing is left to signal */
    struct process_end end;
};

static void process_close(struct process *process)
{
    loop_watch_free(process->status_watch);
    loop_watch_free(process->pidfd_watch);
    loop_timer_free(process->kill_timer);
    drain_done(&process->drain);
    process->status_watch = NULL;
    process->pidfd_watch = NULL;
    process->kill_timer = NULL;
    channels_close(&process->channels);
    if (process->is_launched)
        launch_done(&process->launch);
    process->is_launched = false;
}

/* The last thing that is done with the process: on_end may free it. */
static void process_finish(struct process *process)
{
    process->end.drain_cut = !channels_are_read_out(&process->channels);
    input_drop(&process->channels.input);
    process_close(process);
    if (process->events->on_end)
        process->events->on_end(process->data, &process->end);
}

static void process_on_drain_time(void *data)
{
    process_finish(data);
}

/* Output waits for its reader, and there is no hurry. */
static bool process_is_waiting(const struct process *process)
{
    return channels_are_held(&process->channels) && !process->kill_at_ns && !process->is_killed;
}

/* Init is gone, and with it everything in its pid namespace. What still holds the output open is
 * outside of it: a child of a command without that layer. */
static void process_begin_drain(struct process *process)
{
    uint64_t now = clock_now_ns();

    if (!process->end.ended_ns)
        process->end.ended_ns = now;
    loop_timer_stop(process->kill_timer);
    pty_close_slave(&process->channels.pty);
    if (channels_are_read_out(&process->channels)) {
        process_finish(process);
        return;
    }
    drain_begin(&process->drain);
    if (process_is_waiting(process))
        drain_pause(&process->drain);
}

static void process_on_bytes(void *data, enum stream stream, const char *bytes, size_t len)
{
    struct process *process = data;
    uint64_t offset = process->end.output_bytes;

    process->end.output_bytes += len;
    if (!process_is_waiting(process))
        drain_touch(&process->drain);
    if (process->events->on_output)
        process->events->on_output(process->data, stream, bytes, len, offset);
}

static void process_on_read_out(void *data)
{
    struct process *process = data;

    if (drain_is_on(&process->drain))
        process_finish(process);
}

static void process_on_input(void *data, enum input_event event)
{
    struct process *process = data;

    if (process->events->on_input)
        process->events->on_input(process->data, event);
}

static void process_set_gone(struct process *process)
{
    process_end_set_gone(&process->end, process->has_started || process->is_killed);
}

static void process_set_started(struct process *process, pid_t pid)
{
    process->has_started = true;
    if (process->events->on_started)
        process->events->on_started(process->data, pid);
}

static void process_kill(struct process *process)
{
    struct err ignored; /* nothing more can be done than to wait for the end */

    process->is_killed = true;
    launch_signal(&process->launch, SIGKILL, true, &ignored);
}

/* false when the launcher has nothing more to say for now. */
static bool process_read_report(struct process *process)
{
    struct launch_report report;
    struct err err;

    if (launch_read(&process->launch, &report, &err)) {
        process_kill(process);
        process_end_set_failed(&process->end, LAUNCH_STAGE_SANDBOX, &err);
        process->has_report = true;
        return true;
    }
    process->has_report = report.event != LAUNCH_NOTHING && report.event != LAUNCH_STARTED;
    switch (report.event) {
    case LAUNCH_NOTHING:
        return false;
    case LAUNCH_STARTED:
        process_set_started(process, report.pid);
        break;
    case LAUNCH_FAILED:
        process_end_set_failed(&process->end, report.stage, &report.failure);
        break;
    case LAUNCH_EXITED:
        process_end_set_exited(&process->end, &report);
        break;
    case LAUNCH_GONE:
        process_set_gone(process);
        break;
    }
    return true;
}

static void process_on_status(void *data, int fd, unsigned ready)
{
    struct process *process = data;

    while (!process->has_report && process_read_report(process))
        continue;
    if (process->has_report)
        loop_watch_set(process->status_watch, LOOP_NOTHING);
}

static void process_on_pidfd(void *data, int fd, unsigned ready)
{
    struct process *process = data;

    loop_watch_set(process->pidfd_watch, LOOP_NOTHING);
    process_on_status(process, process->launch.status, LOOP_READ);
    if (!process->has_report)
        process_set_gone(process);
    process->has_report = true;
    process_begin_drain(process);
}

static void process_on_kill_time(void *data)
{
    process_kill(data);
}

static int process_watch(struct process *process, struct err *err)
{
    process->status_watch = loop_watch_new(process->loop, process->launch.status, LOOP_READ,
                                           process_on_status, process, err);
    if (!process->status_watch)
        return -1;
    process->pidfd_watch = loop_watch_new(process->loop, process->launch.pidfd, LOOP_READ,
                                          process_on_pidfd, process, err);
    if (!process->pidfd_watch)
        return -1;
    return channels_watch(&process->channels, process->loop, err);
}

static struct process *process_new(const struct process_options *options)
{
    struct process *process = alloc_zero(1, sizeof *process);
    struct channels *channels = &process->channels;

    process->loop = options->loop;
    process->events = options->events;
    process->data = options->data;
    channels_init(channels);
    channels->on_bytes = process_on_bytes;
    channels->on_read_out = process_on_read_out;
    channels->data = process;
    channels->input.on_event = process_on_input;
    channels->input.data = process;
    process->kill_timer = loop_timer_new(process->loop, process_on_kill_time, process);
    drain_init(&process->drain, &options->drain,
               loop_timer_new(process->loop, process_on_drain_time, process));
    return process;
}

static int process_launch(struct process *process, const struct process_options *options,
                          struct err *err)
{
    AUTO(channels_child_done) struct channels_child child = {0};
    struct launch_options launch = {
        .argv = options->argv,
        .program = options->program,
        .env = options->env,
        .cwd = options->cwd,
        .controlling_tty = options->stdio == PROCESS_TTY,
        .limits = options->limits,
        .cgroup = options->cgroup,
    };

    if (channels_open(&process->channels, options, &child, err))
        return -1;
    memcpy(launch.stdio, child.fds, sizeof launch.stdio);
    process->end.started_ns = clock_now_ns();
    if (sandbox_launch(options->sandbox, &launch, &process->launch, err))
        return -1;
    process->is_launched = true;
    return 0;
}

static void process_auto_free(struct process **process)
{
    process_free(*process);
}

struct process *process_start(const struct process_options *options, struct err *err)
{
    AUTO(process_auto_free) struct process *process = process_new(options);

    if (process_launch(process, options, err) || process_watch(process, err))
        return NULL;
    return TAKE_PTR(process);
}

void process_free(struct process *process)
{
    if (!process)
        return;
    process_close(process);
    free(process);
}

bool process_is_running(const struct process *process)
{
    return !process->has_report;
}

bool process_is_alive(const struct process *process)
{
    struct pollfd pidfd = {.fd = process->launch.pidfd, .events = POLLIN};

    return process->is_launched && poll(&pidfd, 1, 0) == 0;
}

size_t process_write(struct process *process, const void *bytes, size_t len)
{
    return input_write(&process->channels.input, bytes, len);
}

void process_close_input(struct process *process)
{
    input_end(&process->channels.input);
}

void process_hold_output(struct process *process, enum stream stream, bool on)
{
    bool was_waiting = process_is_waiting(process);

    channels_hold(&process->channels, stream, on);
    if (was_waiting == process_is_waiting(process))
        return;
    if (was_waiting)
        drain_resume(&process->drain);
    else
        drain_pause(&process->drain);
}

/* The end may come of it, but not out of this call. */
void process_close_output(struct process *process, enum stream stream)
{
    process_hold_output(process, stream, false);
    channels_close_stream(&process->channels, stream);
    if (channels_are_read_out(&process->channels))
        drain_stop(&process->drain);
}

int process_resize(struct process *process, struct pty_size size, struct err *err)
{
    if (process->has_report)
        return 0;
    if (process->channels.pty.master < 0)
        return err_set(err, ERR_UNSUPPORTED, "the command has no terminal to resize");
    return pty_resize(&process->channels.pty, size, err);
}

static int process_send(struct process *process, int signal, bool everything, struct err *err)
{
    if (process->has_report)
        return 0;
    return launch_signal(&process->launch, signal, everything, err);
}

int process_signal(struct process *process, int signal, struct err *err)
{
    return process_send(process, signal, false, err);
}

int process_signal_all(struct process *process, int signal, struct err *err)
{
    return process_send(process, signal, true, err);
}

int process_interrupt(struct process *process, struct err *err)
{
    if (process->channels.pty.master >= 0 && !process->has_report)
        return pty_signal(&process->channels.pty, SIGINT, err);
    return process_send(process, SIGINT, true, err);
}

/* SIGCONT, or a stopped process would never see the SIGTERM. */
static int process_ask_to_end(struct process *process, struct err *err)
{
    if (process_send(process, SIGTERM, true, err))
        return -1;
    return process_send(process, SIGCONT, true, err);
}

int process_terminate(struct process *process, uint64_t grace_ns, struct err *err)
{
    uint64_t kill_at_ns = clock_after(clock_now_ns(), grace_ns);

    if (process->has_report || process->is_killed)
        return 0;
    if (process->kill_at_ns && process->kill_at_ns <= kill_at_ns)
        return 0;
    if (!grace_ns) {
        process_kill(process);
        return 0;
    }
    if (!process->kill_at_ns && process_ask_to_end(process, err))
        return -1;
    process->kill_at_ns = kill_at_ns;
    loop_timer_start(process->kill_timer, grace_ns);
    return 0;
}
