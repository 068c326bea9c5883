/* See process.h. One process is six things to wait for: what the launcher says (a packet socket),
 * what the guard says (another), the end of the command's init (a pidfd), its output and room for its
 * input (command_stdio.h), and time. They meet in two places:
 *
 *     start --> started --> [launcher reports the end] --> [pidfd: init is gone]
 *                  |                                             |
 *               output ...................................... drain -----> on_end
 *                                                  until every reader is at its end,
 *                                                  or drain.quiet / drain.total is over
 *
 * The report says how the command ended, and that no process is left that could write; of an init
 * that was killed, which never reports, the pidfd says that. Of a process that lingers the report
 * says only the first, and on_exit passes it on.
 *
 * Invariants: on_end is the last callback and the last thing its caller does, because it may free
 * the process. A PTY's slave stays open here until the pidfd fires: the master cannot see a false
 * end while the command closes and reopens its terminal. */
#include "process/process.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "loop/loop.h"
#include "process/command_stdio.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* --- the drain ---
 *
 * How long output is still read after its command has ended. Off until drain_begin(); the timer
 * that it was given then fires when nothing has come for `quiet_ns`, or `total_ns` have gone by.
 * Calls before that do nothing. */

struct drain {
    struct process_drain limits;
    struct loop_timer *timer; /* owned */
    uint64_t until_ns;        /* 0: off */
    uint64_t left_ns;         /* while it stands still */
};

static uint64_t drain_left(const struct drain *drain)
{
    uint64_t now = clock_now_ns();

    return drain->until_ns > now ? drain->until_ns - now : 0;
}

/* Something came. */
static void drain_touch(struct drain *drain)
{
    uint64_t left = drain_left(drain);

    if (drain->until_ns)
        loop_timer_start(drain->timer,
                         left < drain->limits.quiet_ns ? left : drain->limits.quiet_ns);
}

static void drain_begin(struct drain *drain, uint64_t left_ns)
{
    drain->until_ns = clock_after(clock_now_ns(), left_ns);
    drain_touch(drain);
}

/* The clock stands still while a reader keeps the output waiting. */
static void drain_pause(struct drain *drain)
{
    drain->left_ns = drain_left(drain);
    loop_timer_stop(drain->timer);
}

/* --- how it ended --- */

static void process_end_set_exited(struct process_end *end, const struct launch_report *report)
{
    end->ended_ns = clock_now_ns();
    end->usage_known = true;
    end->usage = report->usage;
    end->bytes_written = report->bytes_written;
    if (WIFSIGNALED(report->wait_status)) {
        end->how = PROCESS_SIGNALED;
        end->signal = WTERMSIG(report->wait_status);
    } else {
        end->how = PROCESS_EXITED;
        end->code = WEXITSTATUS(report->wait_status);
    }
}

static void process_end_set_failed(struct process_end *end, enum launch_stage stage,
                                   const struct err *failure)
{
    end->how = PROCESS_FAILED_TO_START;
    end->stage = stage;
    end->failure = *failure;
}

int process_end_exit_code(const struct process_end *end)
{
    switch (end->how) {
    case PROCESS_EXITED:
        return end->code;
    case PROCESS_SIGNALED:
        return 128 + end->signal;
    case PROCESS_FAILED_TO_START:
        break;
    }
    return end->stage == LAUNCH_STAGE_EXEC && end->failure.sys == ENOENT ? 127 : 126;
}

/* --- the process --- */

struct process {
    struct loop *loop;
    const struct process_events *events;
    void *data;
    struct command_stdio stdio;
    struct launch launch;
    struct loop_watch *status_watch;
    struct loop_watch *pidfd_watch;
    struct loop_watch *facts_watch; /* NULL without a guard */
    struct loop_timer *kill_timer;
    struct drain drain;
    uint64_t kill_at_ns; /* 0: not terminating */
    bool is_launched;    /* `launch` has to be done */
    bool has_started;
    bool is_killed;  /* by us, with everything */
    bool is_swept;   /* the init says that it is the last one, or that nothing has run */
    bool has_report; /* `end` says how; nothing is left to signal, unless it lingers */
    bool lingers;
    bool has_exited; /* on_exit was called */
    bool is_gone;    /* so is the init */
    struct process_end end;
};

/* Output waits for its reader, and there is no hurry. */
static bool process_is_waiting(const struct process *process)
{
    return command_stdio_is_held(&process->stdio) && !process->kill_at_ns && !process->is_killed;
}

static void process_close(struct process *process)
{
    loop_watch_free(process->status_watch);
    loop_watch_free(process->pidfd_watch);
    loop_watch_free(process->facts_watch);
    loop_timer_free(process->kill_timer);
    loop_timer_free(process->drain.timer);
    process->drain = (struct drain){0};
    process->status_watch = NULL;
    process->pidfd_watch = NULL;
    process->facts_watch = NULL;
    process->kill_timer = NULL;
    command_stdio_close(&process->stdio);
    if (process->is_launched)
        launch_done(&process->launch);
    process->is_launched = false;
}

static void process_notify_output_end(struct process *process)
{
    if (process->has_exited && command_stdio_is_read_out(&process->stdio) &&
        process->events->on_output_end)
        process->events->on_output_end(process->data);
}

/* With everything that it started; its end comes from the loop. */
static void process_kill(struct process *process)
{
    struct err ignored; /* nothing more can be done than to wait for the end */

    process->is_killed = true;
    launch_signal(&process->launch, SIGKILL, true, &ignored);
}

/* --- facts --- */

/* Nothing is left that a signal could reach. */
static bool process_is_over(const struct process *process)
{
    return process->lingers ? process->is_gone : process->has_report;
}

/* Without its guard a command gets errors that mean nothing. */
static void process_read_facts(struct process *process)
{
    struct launch_fact fact;

    if (!process->facts_watch)
        return;
    while (launch_read_fact(&process->launch, &fact))
        if (process->events->on_fact)
            process->events->on_fact(process->data, &fact);
    if (process->launch.is_unguarded && !process->is_killed && !process_is_over(process))
        process_kill(process);
}

/* What went well all the same did not need the guard any more. */
static void process_check_guard(struct process *process)
{
    bool is_well = process->end.how == PROCESS_EXITED && process->end.code == 0;
    struct err err;

    process_read_facts(process);
    if (!process->launch.is_unguarded || is_well || process->has_exited ||
        process->end.how == PROCESS_FAILED_TO_START)
        return;
    process->end.code = -1;
    process->end.signal = 0;
    err_set(&err, ERR_SYSTEM, "the guard of the sandbox died, and its command was ended");
    process_end_set_failed(&process->end, LAUNCH_STAGE_SANDBOX, &err);
}

/* Everything that the command wrote is in its pipes when the end of it is reported. Output that is
 * held stays there: it comes behind the exit, as that of a child would. */
static void process_notify_exit(struct process *process)
{
    if (process->has_exited || !process->lingers || process->end.how == PROCESS_FAILED_TO_START)
        return;
    process->has_exited = true;
    command_stdio_take(&process->stdio);
    if (process->events->on_exit)
        process->events->on_exit(process->data, &process->end);
    process_notify_output_end(process);
}

/* The last thing that is done with the process: on_end may free it. */
static void process_finish(struct process *process)
{
    process_read_facts(process);
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
        !drain_left(&process->drain))
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
    drain_begin(&process->drain, process->drain.limits.total_ns);
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

    if (process->drain.until_ns)
        process_finish(process);
    else
        process_notify_output_end(process);
}

/* Init went without a word. When it was killed, the kernel killed the command with it. */
static void process_set_gone(struct process *process)
{
    struct err err;

    if (process->has_started || process->is_killed) {
        process->end.how = PROCESS_SIGNALED;
        process->end.signal = SIGKILL;
        return;
    }
    err_set(&err, ERR_SYSTEM, "the launcher died before it could start the command");
    process_end_set_failed(&process->end, LAUNCH_STAGE_SANDBOX, &err);
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
    process->has_report = report.event != LAUNCH_NOTHING && report.event != LAUNCH_STARTED &&
                          report.event != LAUNCH_STOPPED;
    process->is_swept = report.event == LAUNCH_EXITED || report.event == LAUNCH_FAILED;
    switch (report.event) {
    case LAUNCH_NOTHING:
        return false;
    case LAUNCH_STARTED:
        process->has_started = true;
        if (process->events->on_started)
            process->events->on_started(process->data);
        break;
    case LAUNCH_STOPPED:
        if (process->events->on_stopped)
            process->events->on_stopped(process->data);
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
    process_check_guard(process);
    process->end.ended_ns = clock_now_ns();
    if (process->lingers && process->end.how != PROCESS_FAILED_TO_START)
        process_notify_exit(process);
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
    process_check_guard(process);
    process_notify_exit(process);
    if (!process->drain.until_ns)
        process_begin_drain(process);
}

static void process_on_facts(void *data, int fd, unsigned ready)
{
    struct process *process = data;
    struct pollfd end = {.fd = fd};

    process_read_facts(process);
    /* A guard that is gone leaves a descriptor that is always ready. */
    if (poll(&end, 1, 0) > 0)
        loop_watch_set(process->facts_watch, LOOP_NOTHING);
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
    if (process->launch.facts >= 0) {
        process->facts_watch = loop_watch_new(process->loop, process->launch.facts, LOOP_READ,
                                              process_on_facts, process, err);
        if (!process->facts_watch)
            return -1;
    }
    return command_stdio_watch(&process->stdio, process->loop, err);
}

static struct process *process_new(const struct process_options *options)
{
    struct process *process = alloc_zero(1, sizeof *process);
    struct command_stdio *stdio = &process->stdio;
    const struct process_drain *drain = &options->drain;

    process->loop = options->loop;
    process->events = options->events;
    process->data = options->data;
    process->lingers = options->lingers;
    process->end.code = -1;
    command_stdio_init(stdio);
    stdio->on_bytes = process_on_bytes;
    stdio->on_read_out = process_on_read_out;
    stdio->data = process;
    stdio->input.on_event = options->events->on_input;
    stdio->input.data = options->data;
    process->kill_timer = loop_timer_new(process->loop, process_on_kill_time, process);
    process->drain = (struct drain){
        .limits = {.quiet_ns = drain->quiet_ns ? drain->quiet_ns : PROCESS_DRAIN_QUIET_NS,
                   .total_ns = drain->total_ns ? drain->total_ns : PROCESS_DRAIN_TOTAL_NS},
        .timer = loop_timer_new(process->loop, process_on_drain_time, process),
    };
    return process;
}

static void process_auto_free(struct process **process)
{
    process_free(*process);
}

struct process *process_start(const struct process_options *options, struct err *err)
{
    AUTO(process_auto_free) struct process *process = process_new(options);
    AUTO(command_stdio_child_done) struct command_stdio_child child = {0};
    struct launch_options launch = {
        .argv = options->argv,
        .program = options->program,
        .env = options->env,
        .cwd = options->cwd,
        .controlling_tty = options->stdio == PROCESS_TTY,
        .tells_stops = options->tells_stops,
        .limiter = options->limiter,
        .limiter_data = options->limiter_data,
        .asks = options->asks,
        .lingers = options->lingers,
    };

    if (command_stdio_open(&process->stdio, options, &child, err))
        return NULL;
    memcpy(launch.stdio, child.fds, sizeof launch.stdio);
    process->end.started_ns = clock_now_ns();
    if (sandbox_launch(options->sandbox, &launch, &process->launch, err))
        return NULL;
    process->is_launched = true;
    return process_watch(process, err) ? NULL : TAKE_PTR(process);
}

void process_free(struct process *process)
{
    if (!process)
        return;
    process_close(process);
    free(process);
}

/* --- what is done to a process that runs: none of these calls back --- */

bool process_is_running(const struct process *process)
{
    return !process->has_report;
}

int process_publish(struct process *process, uint16_t port, int listener, struct err *err)
{
    if (!process->is_launched || process->has_report)
        return err_set(err, ERR_NOT_FOUND, "the command has ended");
    return launch_publish(&process->launch, port, listener, err);
}

bool process_has_facts(const struct process *process)
{
    return process->is_launched && process->launch.has_facts;
}

bool process_asks(const struct process *process)
{
    return process->is_launched && process->launch.asks;
}

void process_take_stdio(struct process *process, int ret_fds[3])
{
    launch_take_stdio(&process->launch, ret_fds);
}

void process_answer_exit(const struct process *process, uint64_t id, int wait_status)
{
    if (process->is_launched)
        launch_answer_exit(&process->launch, id, wait_status);
}

void process_answer(const struct process *process, uint64_t id, enum launch_verdict verdict)
{
    if (process->is_launched)
        launch_answer(&process->launch, id, verdict);
}

bool process_is_alive(const struct process *process)
{
    struct pollfd pidfd = {.fd = process->launch.pidfd, .events = POLLIN};

    return process->is_launched && poll(&pidfd, 1, 0) == 0;
}

size_t process_write(struct process *process, const void *bytes, size_t len)
{
    return input_write(&process->stdio.input, bytes, len);
}

void process_close_input(struct process *process)
{
    input_end(&process->stdio.input);
}

void process_hold_output(struct process *process, enum stream stream, bool on)
{
    bool was_waiting = process_is_waiting(process);

    command_stdio_hold(&process->stdio, stream, on);
    if (was_waiting == process_is_waiting(process) || !process->drain.until_ns)
        return;
    if (was_waiting)
        drain_begin(&process->drain, process->drain.left_ns);
    else
        drain_pause(&process->drain);
}

/* The end may come of it, but not out of this call: when there is nothing to wait for any more, the
 * timer of the drain fires in the next turn of the loop. */
void process_close_output(struct process *process, enum stream stream)
{
    process_hold_output(process, stream, false);
    command_stdio_close_stream(&process->stdio, stream);
    if (command_stdio_is_read_out(&process->stdio) && process->drain.until_ns)
        loop_timer_start(process->drain.timer, 0);
}

pid_t process_pid(const struct process *process)
{
    return process->is_launched ? launch_pid(&process->launch) : 0;
}

int process_resize(struct process *process, struct pty_size size, struct err *err)
{
    if (process->has_report)
        return 0;
    if (process->stdio.pty.master < 0)
        return err_set(err, ERR_UNSUPPORTED, "the command has no terminal to resize");
    return pty_resize(&process->stdio.pty, size, err);
}

static int process_send(struct process *process, int signal, bool everything, struct err *err)
{
    if (process_is_over(process))
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
    if (process->stdio.pty.master >= 0 && !process->has_report)
        return pty_signal(&process->stdio.pty, SIGINT, err);
    return process_send(process, SIGINT, true, err);
}

int process_terminate(struct process *process, uint64_t grace_ns, struct err *err)
{
    uint64_t kill_at_ns = clock_after(clock_now_ns(), grace_ns);

    if (process_is_over(process) || process->is_killed)
        return 0;
    if (process->kill_at_ns && process->kill_at_ns <= kill_at_ns)
        return 0;
    if (!grace_ns) {
        process_kill(process);
        return 0;
    }
    /* SIGCONT, or a stopped process would never see the SIGTERM. */
    if (!process->kill_at_ns &&
        (process_send(process, SIGTERM, true, err) || process_send(process, SIGCONT, true, err)))
        return -1;
    process->kill_at_ns = kill_at_ns;
    loop_timer_start(process->kill_timer, grace_ns);
    return 0;
}
