/* See process.h. One process is five things to wait for: what the launcher says (a packet socket),
 * the end of the command's init (a pidfd), its output and room for its input (stdio.h), and
 * time. They meet in two places:
 *
 *     start --> started --> [launcher reports the end] --> [pidfd: init is gone]
 *                  |                                             |
 *               output ...................................... drain -----> on_end
 *                                                  until every reader is at its end,
 *                                                  or drain.quiet / drain.total is over
 *
 * The report says how the command ended, and that nobody is left who could write; of an init that
 * was killed, which never reports, the pidfd says that. Of a process that lingers the report says
 * only the first, and on_exit passes it on.
 *
 * Invariants: on_end is the last callback and the last thing its caller does, because it may free
 * the process. A PTY's slave stays open here until the pidfd fires: the master cannot see a false
 * end while the command closes and reopens its terminal (design.md 5). */
#include "process/process.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "loop/loop.h"
#include "process/command_stdio.h"
#include "process/drain.h"
#include "process/process_end.h"
#include "process/process_state.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void process_close(struct process *process)
{
    loop_watch_free(process->status_watch);
    loop_watch_free(process->pidfd_watch);
    loop_timer_free(process->kill_timer);
    drain_done(&process->drain);
    process->status_watch = NULL;
    process->pidfd_watch = NULL;
    process->kill_timer = NULL;
    command_stdio_close(&process->stdio);
    if (process->is_launched)
        launch_done(&process->launch);
    process->is_launched = false;
}

static void process_tell_output_end(struct process *process)
{
    if (process->has_exited && command_stdio_is_read_out(&process->stdio) &&
        process->events->on_output_end)
        process->events->on_output_end(process->data);
}

/* Everything that the command wrote is in its pipes when the end of it is reported. Output that is
 * held stays there: it comes behind the exit, as that of a child would. */
static void process_tell_exit(struct process *process)
{
    if (process->has_exited || !process->lingers || process->end.how == PROCESS_FAILED_TO_START)
        return;
    process->has_exited = true;
    command_stdio_take(&process->stdio);
    if (process->events->on_exit)
        process->events->on_exit(process->data, &process->end);
    process_tell_output_end(process);
}

/* The last thing that is done with the process: on_end may free it. */
static void process_finish(struct process *process)
{
    process->end.drain_cut = !command_stdio_is_read_out(&process->stdio);
    input_drop(&process->stdio.input);
    process_close(process);
    if (process->events->on_end)
        process->events->on_end(process->data, &process->end);
}

/* The loop may come late (a busy machine, many processes): what was written in time is read. */
static void process_on_drain_time(void *data)
{
    struct process *process = data;
    uint64_t before = process->end.output_bytes;

    command_stdio_take(&process->stdio);
    if (process->end.output_bytes == before || command_stdio_is_read_out(&process->stdio) ||
        drain_is_over(&process->drain))
        process_finish(process);
}

/* Init is gone, and with it everything in its pid namespace. What still holds the output open is
 * outside of it: a child of a command without that layer. */
static void process_begin_drain(struct process *process)
{
    uint64_t now = clock_now_ns();

    if (!process->end.ended_ns)
        process->end.ended_ns = now;
    loop_timer_stop(process->kill_timer);
    pty_close_slave(&process->stdio.pty);
    if (command_stdio_is_read_out(&process->stdio)) {
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
    else
        process_tell_output_end(process);
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

static void process_set_started(struct process *process)
{
    process->has_started = true;
    if (process->events->on_started)
        process->events->on_started(process->data);
}

void process_kill(struct process *process)
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
    process->is_swept = report.event == LAUNCH_EXITED || report.event == LAUNCH_FAILED;
    switch (report.event) {
    case LAUNCH_NOTHING:
        return false;
    case LAUNCH_STARTED:
        process_set_started(process);
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
    if (!process->has_report)
        return;
    loop_watch_set(process->status_watch, LOOP_NOTHING);
    if (!process->is_swept)
        return;
    process->end.ended_ns = clock_now_ns();
    if (process->lingers && process->end.how != PROCESS_FAILED_TO_START)
        process_tell_exit(process);
    else
        process_begin_drain(process);
}

static void process_on_pidfd(void *data, int fd, unsigned ready)
{
    struct process *process = data;

    loop_watch_set(process->pidfd_watch, LOOP_NOTHING);
    process->is_gone = true;
    while (!process->has_report && process_read_report(process))
        continue;
    if (!process->has_report)
        process_set_gone(process);
    process->has_report = true;
    loop_watch_set(process->status_watch, LOOP_NOTHING);
    process_tell_exit(process);
    if (!drain_is_on(&process->drain))
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
    return command_stdio_watch(&process->stdio, process->loop, err);
}

static struct process *process_new(const struct process_options *options)
{
    struct process *process = alloc_zero(1, sizeof *process);
    struct command_stdio *stdio = &process->stdio;

    process->loop = options->loop;
    process->events = options->events;
    process->data = options->data;
    process->lingers = options->lingers;
    command_stdio_init(stdio);
    stdio->on_bytes = process_on_bytes;
    stdio->on_read_out = process_on_read_out;
    stdio->data = process;
    stdio->input.on_event = process_on_input;
    stdio->input.data = process;
    process->kill_timer = loop_timer_new(process->loop, process_on_kill_time, process);
    drain_init(&process->drain, &options->drain,
               loop_timer_new(process->loop, process_on_drain_time, process));
    return process;
}

static int process_launch(struct process *process, const struct process_options *options,
                          struct err *err)
{
    AUTO(command_stdio_child_done) struct command_stdio_child child = {0};
    struct launch_options launch = {
        .argv = options->argv,
        .program = options->program,
        .env = options->env,
        .cwd = options->cwd,
        .controlling_tty = options->stdio == PROCESS_TTY,
        .limits = options->limits,
        .cgroup = options->cgroup,
        .lingers = options->lingers,
    };

    if (command_stdio_open(&process->stdio, options, &child, err))
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
