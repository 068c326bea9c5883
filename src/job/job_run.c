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
#include "process/stdin_pump.h"
#include "process/terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define SIGNALS_MAX 8

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
    struct loop_watch *keys; /* in the background of the terminal: that something is typed */
    int keys_fd;
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

/* The terminal may be some other job's of the shell, while ours runs in the background: to switch it,
 * or to read from it, would stop us then. */
static bool run_owns_terminal(const struct job_run *run)
{
    pid_t owner = tcgetpgrp(run->options->terminal_fd);

    return owner < 0 || owner == getpgrp();
}

static void run_take_terminal(struct job_run *run);

static void on_key(void *data, int fd, unsigned ready)
{
    struct job_run *run = data;
    struct epoll_event event;

    epoll_wait(fd, &event, 1, 0); /* until the next one */
    run_take_terminal(run);
}

/* A shell does not tell that what runs in the background is brought to the foreground: but then it is
 * for us what is typed. Each time something is, we look; what is typed for others stays theirs. */
static void run_watch_keys(struct job_run *run)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    AUTO_CLOSE int fd = run->keys ? -1 : epoll_create1(EPOLL_CLOEXEC);
    struct err ignored; /* the next signal makes us look as well */

    if (fd < 0 || epoll_ctl(fd, EPOLL_CTL_ADD, run->options->terminal_fd, &event))
        return;
    run->keys = loop_watch_new(run->loop, fd, LOOP_READ, on_key, run, &ignored);
    if (run->keys)
        run->keys_fd = TAKE_FD(fd);
}

static void run_unwatch_keys(struct job_run *run)
{
    loop_watch_free(TAKE_PTR(run->keys));
    if (run->keys_fd >= 0)
        close(TAKE_FD(run->keys_fd));
}

/* Turns the terminal raw and reads from it if it is ours (again); lets go of it if it is not. */
static void run_take_terminal(struct job_run *run)
{
    const struct job_run_options *options = run->options;
    bool is_ours = run_owns_terminal(run);
    struct err ignored; /* the terminal has gone, which its reader will find */

    if (run->has_lent)
        return;
    if (is_ours)
        run_unwatch_keys(run);
    else
        run_watch_keys(run);
    if (run->stdin_pump && options->input == JOB_RUN_INPUT_FD && isatty(options->input_fd))
        stdin_pump_pause(run->stdin_pump, !is_ours);
    if (options->stdio != PROCESS_TTY || !is_ours || run->terminal.fd >= 0)
        return;
    terminal_raw(&run->terminal, options->terminal_fd, &ignored);
    run_follow_size(run);
}

/* Ctrl-Z: stops all of the command, gives the terminal back, stops ourselves, and all the way back
 * when the shell continues us. A key has stopped the command alone: then all of our own job stop with
 * us, as they would have without us. Where nobody could continue us, in an orphaned group, the kernel
 * does not stop us. */
static void run_suspend(struct job_run *run, bool is_by_key)
{
    const bool has_clock = !job_is_held(run->job);
    struct err ignored;
    sigset_t stop;

    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    process_signal_all(job_process(run->job), SIGSTOP, &ignored);
    terminal_restore(&run->terminal);
    if (has_clock)
        run_hold_clock(run, true);
    kill(is_by_key ? 0 : getpid(), SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &stop, NULL);
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    if (has_clock)
        run_hold_clock(run, false);
    if (run->options->terminal_fd >= 0)
        run_take_terminal(run);
    process_signal_all(job_process(run->job), SIGCONT, &ignored);
}

static void on_signal(void *data, int signal)
{
    struct job_run *run = data;
    struct err ignored; /* it has ended, or the next signal will tell */

    if (!job_is_running(run->job)) {
        if (signal != SIGWINCH && signal != SIGTSTP && signal != SIGCONT)
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
        run_suspend(run, false);
        break;
    case SIGCONT: /* as by the shell's fg or bg */
        run_take_terminal(run);
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
    static const int wanted[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH, SIGCONT};
    int list[SIGNALS_MAX] = {0};
    size_t len = 0;

    if (run->options->signals == JOB_RUN_SIGNALS_LEAVE)
        return 0;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        struct sigaction now;

        if ((wanted[i] == SIGWINCH || wanted[i] == SIGCONT) && run->options->terminal_fd < 0)
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
    if (run->keys)
        run_take_terminal(run);
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

static void on_job(struct job_watch *watch, enum job_event event)
{
    struct job_run *run = container_of(watch, struct job_run, job_watch);

    switch (event) {
    case JOB_STARTED:
        if (run->options->on_started)
            run->options->on_started(run->options->data);
        break;
    case JOB_STOPPED:
        run_suspend(run, true);
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

    if (run->has_lent == on)
        return;
    run->has_lent = on;
    if (run->stdin_pump && options->input == JOB_RUN_INPUT_FD)
        stdin_pump_pause(run->stdin_pump, on);
    if (run->output_pump)
        output_pump_pause(run->output_pump, on);
    if (on)
        terminal_restore(&run->terminal);
    else if (options->terminal_fd >= 0)
        run_take_terminal(run);
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
    if (options->stdio == PROCESS_TTY && options->terminal_fd >= 0 && run_owns_terminal(run) &&
        terminal_raw(&run->terminal, options->terminal_fd, err))
        return -1;
    if (run_start_stdin(run, err))
        return -1;
    if (options->terminal_fd >= 0)
        run_take_terminal(run);
    return 0;
}

/* --- life --- */

void job_run_free(struct job_run *run)
{
    if (!run)
        return;
    terminal_restore(&run->terminal);
    run_unwatch_keys(run);
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

static const struct job_tap *find_tap(const struct job_run_options *options)
{
    static const struct job_tap tap = {.on_output = on_output, .on_input = on_input};
    static const struct job_tap tap_of_job_write = {.on_output = on_output};

    return options->input == JOB_RUN_INPUT_JOB ? &tap_of_job_write : &tap;
}

struct job_run *job_run_start(const struct job_run_options *options, struct err *err)
{
    const struct spool_options spool = {.quota = options->spool};
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
        .tells_stops = options->terminal_fd >= 0 && options->signals == JOB_RUN_SIGNALS_HANDLE,
        .stdio = options->stdio,
        .input = options->input == JOB_RUN_INPUT_NULL ? PROCESS_STDIN_NULL : PROCESS_STDIN_PIPE,
        .fds = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO},
        .size = has_terminal ? terminal_size(options->terminal_fd) : options->size,
        .drain = {.quiet_ns =
                      options->drain.quiet_ns ? options->drain.quiet_ns : PROCESS_DRAIN_QUIET_NS,
                  .total_ns = options->drain.total_ns},
    };

    *run = (struct job_run){
        .options = options, .loop = options->loop, .terminal = {.fd = -1}, .keys_fd = -1};
    /* In the background its settings are those of who has it: of a shell that edits a line. */
    process.tty_like = has_terminal && run_owns_terminal(run) ? &like : NULL;
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
            .without_cgroup = options->without_cgroup,
            .access = options->access,
            .topics = options->topics,
            .audit_topics = options->audit_topics,
            .is_judged = options->is_judged,
            .streams = JOB_STREAMS_APART,
            .output = {.memory_max = options->max_output, .spool = spool.quota ? &spool : NULL},
            .tap = find_tap(options),
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
