/* See job_run.h. A job, what its input comes from and its output goes to, a clock, and up to three
 * reasons to end early: time is up, the caller cancels, a signal comes to us. Whatever comes first
 * is the reason that the result names; the command's own end is kept next to it.
 *
 * It does not decide what may run, and it shows nothing. */
#include "job/job_run.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "loop/loop.h"
#include "output/output.h"
#include "process/output_pump.h"
#include "process/terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define SIGNALS_MAX 8

/* --- input: given data, or what comes from a descriptor ---
 *
 * One buffer of bytes that wait: it is read into only when empty, so a command that does not read
 * stops us from reading, and so the writer on our stdin waits, too.
 *
 * The descriptor may be the user's stdin: its flags are shared with the process that started us, so
 * it is never made non-blocking; a read that follows readiness does not block. Files are always
 * ready and cannot be watched: they are read in turns of the loop (a timer of 0). */

struct stdin_pump {
    struct process *process;
    int fd; /* -1: nothing more comes than what waits */
    struct loop_watch *watch;
    struct loop_timer *turn; /* for files */
    bool is_paused;          /* nothing is read now */
    const char *next;
    size_t left;
    char buffer[INPUT_MAX];
};

static void stdin_pump_stop(struct stdin_pump *pump)
{
    loop_watch_free(pump->watch);
    loop_timer_free(pump->turn);
    pump->watch = NULL;
    pump->turn = NULL;
    pump->fd = -1;
    pump->left = 0;
}

/* Wants to read again, or not. */
static void stdin_pump_set_reading(struct stdin_pump *pump, bool on)
{
    on = on && !pump->is_paused;
    if (pump->watch)
        loop_watch_set(pump->watch, on ? LOOP_READ : LOOP_NOTHING);
    else if (pump->turn && on)
        loop_timer_start(pump->turn, 0);
}

static void stdin_pump_pause(struct stdin_pump *pump, bool on)
{
    pump->is_paused = on;
    stdin_pump_set_reading(pump, !pump->left);
}

static void stdin_pump_push(struct stdin_pump *pump)
{
    size_t taken = process_write(pump->process, pump->next, pump->left);

    pump->next += taken;
    pump->left -= taken;
    if (!pump->left && pump->fd < 0)
        process_close_input(pump->process);
    else
        stdin_pump_set_reading(pump, !pump->left);
}

static void stdin_pump_read(void *data)
{
    struct stdin_pump *pump = data;
    ssize_t n;

    if (pump->is_paused) /* since the loop found it ready */
        return;
    n = read(pump->fd, pump->buffer, sizeof pump->buffer);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        stdin_pump_set_reading(pump, true);
        return;
    }
    if (n <= 0) {
        stdin_pump_stop(pump);
        process_close_input(pump->process);
        return;
    }
    pump->next = pump->buffer;
    pump->left = (size_t)n;
    stdin_pump_push(pump);
}

static void stdin_pump_on_readable(void *data, int fd, unsigned ready)
{
    stdin_pump_read(data);
}

/* `data` then end of file; borrowed for the life of the pump. */
static struct stdin_pump *stdin_pump_new_data(struct process *process, const void *data, size_t len)
{
    struct stdin_pump *pump = alloc_zero(1, sizeof *pump);

    pump->process = process;
    pump->fd = -1;
    pump->next = data;
    pump->left = len;
    stdin_pump_push(pump);
    return pump;
}

static void stdin_pump_free(struct stdin_pump *pump)
{
    if (!pump)
        return;
    stdin_pump_stop(pump);
    free(pump);
}

/* What `fd` (borrowed, of any kind, blocking or not) gives until its end, then end of file. NULL on
 * failure. */
static struct stdin_pump *stdin_pump_new_fd(struct loop *loop, struct process *process, int fd,
                                            struct err *err)
{
    struct stdin_pump *pump = alloc_zero(1, sizeof *pump);
    struct err why;

    pump->process = process;
    pump->fd = fd;
    pump->watch = loop_watch_new(loop, fd, LOOP_READ, stdin_pump_on_readable, pump, &why);
    if (pump->watch)
        return pump;
    if (why.code != ERR_UNSUPPORTED) {
        *err = why;
        stdin_pump_free(pump);
        return NULL;
    }
    pump->turn = loop_timer_new(loop, stdin_pump_read, pump);
    stdin_pump_set_reading(pump, true);
    return pump;
}

/* --- the run --- */

enum stop_reason { STOP_NONE, STOP_TIMEOUT, STOP_CANCEL };

struct job_run {
    const struct job_run_options *options;
    struct loop *loop;
    struct loop *own_loop;
    struct job *job; /* NULL once it was taken */
    struct job_watch job_watch;
    struct stdin_pump *stdin_pump;   /* NULL without one */
    struct output_pump *output_pump; /* NULL without one */
    struct output_order order;
    struct terminal terminal;
    struct loop_timer *timeout;
    uint64_t timeout_at_ns;            /* 0: none */
    uint64_t timeout_left_ns;          /* while the job is held */
    struct loop_timer *notification;   /* that it is over */
    struct loop_timer *flush_deadline; /* of the pump, after a command that had to be stopped */
    struct loop_watch *cancel;
    struct loop_signals *signals;
    enum stop_reason stop;
    int stop_signal; /* the signal to us that was the reason; 0: none */
    bool drain_cut;
    bool has_lent; /* the terminal */
    bool is_over;  /* it has ended, and everything was passed on */
};

void job_run_defaults(struct job_run_options *options)
{
    *options = (struct job_run_options){
        .input_fd = -1,
        .terminal_fd = -1,
        .cancel_fd = -1,
        .pump_fds = {-1, -1},
        .kill_after_ns = JOB_RUN_KILL_AFTER_NS,
        .max_output = OUTPUT_MEMORY_DEFAULT,
    };
}

/* --- ending it early --- */

/* Output is still being passed on. */
static bool run_is_pumping(const struct job_run *run)
{
    return run->output_pump && !output_pump_is_empty(run->output_pump);
}

/* The command has ended, and who reads its output lets us wait. */
static void run_abandon(void *data)
{
    struct job_run *run = data;

    if (!run_is_pumping(run))
        return;
    run->drain_cut = true;
    output_pump_abandon(run->output_pump);
}

/* A failure to ask for the end cannot be helped from here: SIGKILL follows. */
static void run_stop(struct job_run *run, enum stop_reason reason, int signal)
{
    struct err ignored;

    if (run->stop == STOP_NONE) {
        run->stop = reason;
        run->stop_signal = signal;
    }
    if (job_terminate(run->job, run->options->kill_after_ns, &ignored))
        job_terminate(run->job, 0, &ignored);
}

static void on_timeout(void *data)
{
    struct job_run *run = data;

    if (job_is_running(run->job))
        run_stop(run, STOP_TIMEOUT, 0);
}

void job_run_cancel(struct job_run *run)
{
    if (job_is_running(run->job))
        run_stop(run, STOP_CANCEL, 0);
    else
        run_abandon(run);
}

static void on_cancel(void *data, int fd, unsigned ready)
{
    struct job_run *run = data;

    loop_watch_set(run->cancel, LOOP_NOTHING);
    job_run_cancel(run);
}

static void run_follow_size(struct job_run *run)
{
    struct err ignored; /* the command just keeps the old size */

    job_resize(run->job, terminal_size(run->options->terminal_fd), &ignored);
}

/* Ctrl-Z: stops the command, gives the terminal back, stops ourselves, and all the way back when
 * the shell continues us. */
static void run_suspend(struct job_run *run)
{
    bool is_raw = run->terminal.fd >= 0;
    struct err ignored;

    process_signal_all(job_process(run->job), SIGSTOP, &ignored);
    terminal_restore(&run->terminal);
    raise(SIGSTOP);
    if (is_raw) {
        terminal_raw(&run->terminal, run->options->terminal_fd, &ignored);
        run_follow_size(run);
    }
    process_signal_all(job_process(run->job), SIGCONT, &ignored);
}

static void on_signal(void *data, int signal)
{
    struct job_run *run = data;
    struct err ignored; /* it has ended, or the next signal will tell */

    if (!job_is_running(run->job)) {
        if (signal != SIGWINCH && signal != SIGTSTP)
            run_abandon(run);
        return;
    }
    switch (signal) {
    case SIGINT:
        job_interrupt(run->job, &ignored);
        break;
    case SIGQUIT:
        process_signal_all(job_process(run->job), SIGQUIT, &ignored);
        break;
    case SIGTSTP:
        run_suspend(run);
        break;
    case SIGWINCH:
        run_follow_size(run);
        break;
    default:
        run_stop(run, STOP_CANCEL, signal);
        break;
    }
}

/* What our parent had set to be ignored (nohup) stays ignored. */
static int run_watch_signals(struct job_run *run, struct err *err)
{
    static const int wanted[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH};
    int list[SIGNALS_MAX] = {0};
    size_t len = 0;

    if (run->options->signals == JOB_RUN_SIGNALS_LEAVE)
        return 0;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        struct sigaction now;

        if (wanted[i] == SIGWINCH && run->options->terminal_fd < 0)
            continue;
        if (sigaction(wanted[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            list[len++] = wanted[i];
    }
    run->signals = loop_signals_new(run->loop, list, on_signal, run, err);
    return run->signals ? 0 : -1;
}

/* --- what comes and goes --- */

static void on_output(void *data, enum stream stream, const char *bytes, size_t len,
                      uint64_t offset)
{
    struct job_run *run = data;

    output_order_add(&run->order, stream, len);
    if (run->options->on_output)
        run->options->on_output(run->options->data, stream, bytes, len, offset);
    if (run->output_pump)
        output_pump_write(run->output_pump, stream, bytes, len);
}

static void on_input(void *data, enum input_event event)
{
    struct job_run *run = data;

    if (!run->stdin_pump)
        return;
    if (event == INPUT_ROOM)
        stdin_pump_push(run->stdin_pump);
    else
        stdin_pump_stop(run->stdin_pump);
}

static void on_notification(void *data)
{
    struct job_run *run = data;

    run->options->on_over(run->options->data);
}

/* Who waits is told from the loop, when nothing of ours is being called any more, so that it may
 * free us. */
static void run_set_over(struct job_run *run)
{
    if (run->is_over)
        return;
    run->is_over = true;
    if (!run->options->on_over)
        return;
    run->notification = loop_timer_new(run->loop, on_notification, run);
    loop_timer_start(run->notification, 0);
}

static void on_pumped(void *data)
{
    struct job_run *run = data;

    if (job_end(run->job))
        run_set_over(run);
}

static void run_on_end(struct job_run *run)
{
    uint64_t limit_ns = run->options->drain.total_ns;

    stdin_pump_free(TAKE_PTR(run->stdin_pump));
    if (run->output_pump)
        output_pump_end(run->output_pump);
    if (!run_is_pumping(run)) {
        run_set_over(run);
    } else if (run->stop != STOP_NONE) {
        run->flush_deadline = loop_timer_new(run->loop, run_abandon, run);
        loop_timer_start(run->flush_deadline, limit_ns ? limit_ns : PROCESS_DRAIN_TOTAL_NS);
    }
}

/* The command's time is only what it does not wait for a person. */
static void run_hold_clock(struct job_run *run, bool is_held)
{
    uint64_t now = clock_now_ns();

    if (!run->timeout_at_ns)
        return;
    if (is_held) {
        run->timeout_left_ns = run->timeout_at_ns > now ? run->timeout_at_ns - now : 0;
        loop_timer_stop(run->timeout);
    } else {
        run->timeout_at_ns = clock_after(now, run->timeout_left_ns);
        loop_timer_start(run->timeout, run->timeout_left_ns);
    }
}

static void on_job(struct job_watch *watch, enum job_event event)
{
    struct job_run *run = container_of(watch, struct job_run, job_watch);

    switch (event) {
    case JOB_STARTED:
        if (run->options->on_started)
            run->options->on_started(run->options->data);
        break;
    case JOB_TRACED:
        if (run->options->on_traced)
            run->options->on_traced(run->options->data, run->job);
        break;
    case JOB_HELD:
    case JOB_RELEASED:
        run_hold_clock(run, event == JOB_HELD);
        break;
    case JOB_ENDED:
        run_on_end(run);
        break;
    case JOB_ROOM:
    case JOB_EXITED:
    case JOB_READ_OUT:
        break;
    }
}

struct job *job_run_job(const struct job_run *run)
{
    return run->job;
}

void job_run_lend_terminal(struct job_run *run, bool on)
{
    const struct job_run_options *options = run->options;
    struct err ignored; /* the terminal has gone, which its reader will find */

    if (run->has_lent == on)
        return;
    run->has_lent = on;
    if (run->stdin_pump && options->input == JOB_RUN_INPUT_FD)
        stdin_pump_pause(run->stdin_pump, on);
    if (run->output_pump)
        output_pump_pause(run->output_pump, on);
    if (options->stdio != PROCESS_TTY || options->terminal_fd < 0)
        return;
    if (on) {
        terminal_restore(&run->terminal);
        return;
    }
    terminal_raw(&run->terminal, options->terminal_fd, &ignored);
    run_follow_size(run);
}

static int run_start_stdin(struct job_run *run, struct err *err)
{
    const struct job_run_options *options = run->options;

    if (options->stdio == PROCESS_FDS)
        return 0;
    switch (options->input) {
    case JOB_RUN_INPUT_NULL:
    case JOB_RUN_INPUT_JOB:
        return 0;
    case JOB_RUN_INPUT_DATA:
        run->stdin_pump =
            stdin_pump_new_data(job_process(run->job), options->input_data, options->input_len);
        return 0;
    case JOB_RUN_INPUT_FD:
        run->stdin_pump =
            stdin_pump_new_fd(run->loop, job_process(run->job), options->input_fd, err);
        return run->stdin_pump ? 0 : err_wrap(err, "relaying input");
    }
    return err_set(err, ERR_BUG, "unknown kind of input %d", (int)options->input);
}

static int run_start_pump(struct job_run *run, struct err *err)
{
    struct output_pump_options pump = {
        .loop = run->loop,
        .process = job_process(run->job),
        .on_empty = on_pumped,
        .data = run,
    };
    bool is_wanted = false;

    for (int i = 0; i < STREAM_COUNT; i++) {
        pump.fds[i] = run->options->pump_fds[i];
        is_wanted |= pump.fds[i] >= 0;
    }
    if (is_wanted)
        run->output_pump = output_pump_new(&pump, err);
    return is_wanted && !run->output_pump ? err_wrap(err, "passing output on") : 0;
}

/* What goes on beside the command, once it has been started. */
static int run_accompany(struct job_run *run, struct err *err)
{
    const struct job_run_options *options = run->options;

    if (options->timeout_ns) {
        run->timeout = loop_timer_new(run->loop, on_timeout, run);
        run->timeout_at_ns = clock_after(clock_now_ns(), options->timeout_ns);
        loop_timer_start(run->timeout, options->timeout_ns);
    }
    if (run_start_pump(run, err))
        return -1;
    if (options->cancel_fd >= 0) {
        run->cancel = loop_watch_new(run->loop, options->cancel_fd, LOOP_READ, on_cancel, run, err);
        if (!run->cancel)
            return err_wrap(err, "watching for cancellation");
    }
    if (options->stdio == PROCESS_TTY && options->terminal_fd >= 0 &&
        terminal_raw(&run->terminal, options->terminal_fd, err))
        return -1;
    return run_start_stdin(run, err);
}

/* --- life --- */

void job_run_free(struct job_run *run)
{
    if (!run)
        return;
    terminal_restore(&run->terminal);
    loop_signals_free(run->signals);
    loop_watch_free(run->cancel);
    loop_timer_free(run->timeout);
    loop_timer_free(run->flush_deadline);
    loop_timer_free(run->notification);
    stdin_pump_free(run->stdin_pump);
    output_pump_free(run->output_pump);
    job_free(run->job);
    output_order_done(&run->order);
    loop_free(run->own_loop);
    free(run);
}

static void job_run_auto(struct job_run **slot)
{
    job_run_free(*slot);
}

struct job_run *job_run_start(const struct job_run_options *options, struct err *err)
{
    static const struct job_tap tap = {.on_output = on_output, .on_input = on_input};
    static const struct job_tap tap_of_job_write = {.on_output = on_output};
    AUTO(job_run_auto) struct job_run *run = alloc_zero(1, sizeof *run);
    struct termios like;
    bool has_terminal = options->terminal_fd >= 0 && tcgetattr(options->terminal_fd, &like) == 0;
    struct process_options process = {
        .sandbox = options->sandbox,
        .argv = options->argv,
        .program = options->program,
        .env = options->env,
        .cwd = options->cwd,
        .asks = options->asks,
        .stdio = options->stdio,
        .input = options->input == JOB_RUN_INPUT_NULL ? PROCESS_STDIN_NULL : PROCESS_STDIN_PIPE,
        .fds = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO},
        .size = has_terminal ? terminal_size(options->terminal_fd) : options->size,
        .tty_like = has_terminal ? &like : NULL,
        .drain = {.quiet_ns =
                      options->drain.quiet_ns ? options->drain.quiet_ns : PROCESS_DRAIN_QUIET_NS,
                  .total_ns = options->drain.total_ns},
    };

    *run = (struct job_run){.options = options, .loop = options->loop, .terminal = {.fd = -1}};
    if (!options->argv || !options->argv[0]) {
        err_set(err, ERR_INVALID, "there is no command to run");
        return NULL;
    }
    if (!run->loop)
        run->loop = run->own_loop = loop_new(err);
    /* Signals first: one that comes between is not lost, but waits for the loop. */
    if (!run->loop || run_watch_signals(run, err))
        return NULL;
    process.loop = run->loop;
    run->job = job_start(
        &(struct job_options){
            .command = options->argv[0],
            .process = &process,
            .limits = &options->limits,
            .cgroup_base = options->cgroup_base,
            .access = options->access,
            .topics = options->topics,
            .audit_topics = options->audit_topics,
            .is_judged = options->is_judged,
            .streams = JOB_STREAMS_APART,
            .output = {.memory_max = options->max_output},
            .tap = options->input == JOB_RUN_INPUT_JOB ? &tap_of_job_write : &tap,
            .data = run,
        },
        err);
    if (!run->job)
        return NULL;
    run->job_watch.on_event = on_job;
    job_watch(run->job, &run->job_watch);
    return run_accompany(run, err) ? NULL : TAKE_PTR(run);
}

int job_run(const struct job_run_options *options, struct job_result *ret, struct err *err)
{
    AUTO(job_run_auto) struct job_run *run = job_run_start(options, err);

    if (!run || loop_run(run->loop, &run->is_over, err))
        return -1;
    job_run_take(run, ret);
    return 0;
}

/* --- the result --- */

const char *job_run_end_name(enum job_run_end end)
{
    static const char *const names[] = {
        [JOB_RUN_EXITED] = "exited",       [JOB_RUN_SIGNALED] = "signaled",
        [JOB_RUN_TIMED_OUT] = "timed-out", [JOB_RUN_CANCELLED] = "cancelled",
        [JOB_RUN_DENIED] = "denied",       [JOB_RUN_FAILED_TO_START] = "failed-to-start",
    };

    return names[end];
}

/* What we did decides, then what the sandbox did. */
static enum job_run_end end_of(const struct job_run *run, const struct job_result *result)
{
    static const enum job_run_end own[] = {
        [PROCESS_EXITED] = JOB_RUN_EXITED,
        [PROCESS_SIGNALED] = JOB_RUN_SIGNALED,
        [PROCESS_FAILED_TO_START] = JOB_RUN_FAILED_TO_START,
    };

    if (run->stop != STOP_NONE)
        return run->stop == STOP_TIMEOUT ? JOB_RUN_TIMED_OUT : JOB_RUN_CANCELLED;
    if (job_was_terminated(run->job)) /* by who was asked about it */
        return JOB_RUN_CANCELLED;
    if ((result->process->how == PROCESS_EXITED && result->process->code == 0) ||
        (job_result_has_failed(result) && result->process->stage == LAUNCH_STAGE_SANDBOX))
        return own[result->process->how];
    return denials_by_sandbox(&result->denials) ? JOB_RUN_DENIED : own[result->process->how];
}

void job_run_take(struct job_run *run, struct job_result *ret)
{
    const struct process_end *end = job_end(run->job);

    job_unwatch(&run->job_watch);
    *ret = (struct job_result){
        .process = end,
        .cancel_signal = run->stop_signal,
        .wall_ns = end->ended_ns - end->started_ns,
        .held_ns = job_held_ns(run->job),
        .stdio = run->options->stdio,
        .order = run->order,
        .drain_cut = run->drain_cut || end->drain_cut,
        .sandbox = run->options->sandbox,
    };
    run->order = (struct output_order){0};
    for (int i = 0; i < STREAM_COUNT && run->output_pump; i++)
        ret->pump_error[i] = output_pump_error(run->output_pump, (enum stream)i);
    job_denials(run->job, &ret->denials);
    ret->end = end_of(run, ret);
    ret->job = TAKE_PTR(run->job);
}

void job_result_done(struct job_result *result)
{
    job_free(TAKE_PTR(result->job));
    output_order_done(&result->order);
    denials_done(&result->denials);
}

bool job_result_has_failed(const struct job_result *result)
{
    return result->process->how == PROCESS_FAILED_TO_START;
}

/* 126 and 127: POSIX XCU 2.8.2; 124 and 125: as timeout(1) and env(1) do. */
int job_result_exit_code(const struct job_result *result)
{
    if (result->end == JOB_RUN_TIMED_OUT)
        return 124;
    if (result->end == JOB_RUN_CANCELLED)
        return 128 + (result->cancel_signal ? result->cancel_signal : SIGTERM);
    if (job_result_has_failed(result) && result->process->stage != LAUNCH_STAGE_EXEC)
        return 125;
    return process_end_exit_code(result->process);
}
