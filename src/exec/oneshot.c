/* See oneshot.h. A process, a capture, a clock, and up to three reasons to end early: time is up,
 * somebody cancels, a signal comes. Whatever comes first is the reason; the command's own end is
 * kept next to it. The loop runs until the process says that it is over.
 *
 * It does not decide what may run, and it does not show anything to anybody. */
#include "exec/oneshot.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "exec/capture.h"
#include "exec/feed.h"
#include "exec/terminal.h"
#include "loop/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define SIGNALS_MAX 8

enum stop_reason { STOP_NONE, STOP_TIMEOUT, STOP_CANCEL };

struct oneshot {
    const struct oneshot_options *options;
    struct loop *loop;
    struct loop *own_loop;
    struct limits_scope limits;
    struct process *process;
    struct process_events events;
    struct feed *feed;
    struct terminal terminal;
    struct loop_timer *timeout;
    struct loop_watch *cancel;
    struct loop_signals *signals;
    enum stop_reason stop;
    int stop_signal;
    struct oneshot_result result; /* as far as known while it runs */
    struct process_end end;
    bool is_over;
};

void oneshot_defaults(struct oneshot_options *options)
{
    *options = (struct oneshot_options){
        .input_fd = -1,
        .terminal_fd = -1,
        .cancel_fd = -1,
        .kill_after_ns = ONESHOT_KILL_AFTER_NS,
        .max_output = CAPTURE_DEFAULT_MAX,
    };
}

const char *oneshot_end_name(enum oneshot_end end)
{
    static const char *const names[] = {
        [ONESHOT_EXITED] = "exited",       [ONESHOT_SIGNALED] = "signaled",
        [ONESHOT_TIMED_OUT] = "timed-out", [ONESHOT_CANCELLED] = "cancelled",
        [ONESHOT_DENIED] = "denied",       [ONESHOT_FAILED_TO_START] = "failed-to-start",
    };

    return names[end];
}

static void oneshot_done(struct oneshot *oneshot)
{
    terminal_restore(&oneshot->terminal);
    loop_signals_free(oneshot->signals);
    loop_watch_free(oneshot->cancel);
    loop_timer_free(oneshot->timeout);
    feed_free(oneshot->feed);
    process_free(oneshot->process);
    limits_close(&oneshot->limits);
    oneshot_result_done(&oneshot->result);
    loop_free(oneshot->own_loop);
}

static void on_started(void *data, pid_t pid)
{
    struct oneshot *oneshot = data;

    oneshot->result.pid = pid;
    if (oneshot->options->on_started)
        oneshot->options->on_started(oneshot->options->data, pid);
}

static void on_output(void *data, enum stream stream, const char *bytes, size_t len,
                      uint64_t offset)
{
    struct oneshot *oneshot = data;

    capture_add(oneshot->result.capture, stream, bytes, len);
    if (oneshot->options->on_output)
        oneshot->options->on_output(oneshot->options->data, stream, bytes, len, offset);
}

static void on_input(void *data, enum input_event event)
{
    struct oneshot *oneshot = data;

    if (!oneshot->feed)
        return;
    if (event == INPUT_ROOM)
        feed_on_room(oneshot->feed);
    else
        feed_on_closed(oneshot->feed);
}

static void on_end(void *data, const struct process_end *end)
{
    struct oneshot *oneshot = data;

    oneshot->end = *end;
    oneshot->is_over = true;
}

/* A failure to ask for the end cannot be helped from here: SIGKILL follows. */
static void oneshot_stop(struct oneshot *oneshot, enum stop_reason reason, int signal)
{
    struct err ignored;

    if (!process_is_running(oneshot->process))
        return;
    if (oneshot->stop == STOP_NONE) {
        oneshot->stop = reason;
        oneshot->stop_signal = signal;
    }
    if (process_terminate(oneshot->process, oneshot->options->kill_after_ns, &ignored))
        process_terminate(oneshot->process, 0, &ignored);
}

static void on_timeout(void *data)
{
    oneshot_stop(data, STOP_TIMEOUT, 0);
}

static void on_cancel(void *data, int fd, unsigned ready)
{
    struct oneshot *oneshot = data;

    loop_watch_set(oneshot->cancel, LOOP_NOTHING);
    oneshot_stop(oneshot, STOP_CANCEL, 0);
}

static void oneshot_follow_size(struct oneshot *oneshot)
{
    struct err ignored; /* the command just keeps the old size */

    process_resize(oneshot->process, terminal_size(oneshot->options->terminal_fd), &ignored);
}

/* Ctrl-Z: stops the command, gives the terminal back, stops ourselves, and all the way back when
 * the shell continues us. */
static void oneshot_suspend(struct oneshot *oneshot)
{
    bool is_raw = oneshot->terminal.fd >= 0;
    struct err ignored;

    process_signal_all(oneshot->process, SIGSTOP, &ignored);
    terminal_restore(&oneshot->terminal);
    raise(SIGSTOP);
    if (is_raw) {
        terminal_raw(&oneshot->terminal, oneshot->options->terminal_fd, &ignored);
        oneshot_follow_size(oneshot);
    }
    process_signal_all(oneshot->process, SIGCONT, &ignored);
}

static void on_signal(void *data, int signal)
{
    struct oneshot *oneshot = data;
    struct err ignored; /* it has ended, or the next signal will tell */

    switch (signal) {
    case SIGINT:
        process_interrupt(oneshot->process, &ignored);
        break;
    case SIGQUIT:
        process_signal_all(oneshot->process, SIGQUIT, &ignored);
        break;
    case SIGTSTP:
        oneshot_suspend(oneshot);
        break;
    case SIGWINCH:
        oneshot_follow_size(oneshot);
        break;
    default:
        oneshot_stop(oneshot, STOP_CANCEL, signal);
        break;
    }
}

/* What our parent had set to be ignored (nohup) stays ignored. */
static int oneshot_watch_signals(struct oneshot *oneshot, struct err *err)
{
    static const int wanted[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH};
    int list[SIGNALS_MAX] = {0};
    size_t len = 0;

    if (oneshot->options->signals == ONESHOT_SIGNALS_LEAVE)
        return 0;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        struct sigaction now;

        if (wanted[i] == SIGWINCH && oneshot->options->terminal_fd < 0)
            continue;
        if (sigaction(wanted[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            list[len++] = wanted[i];
    }
    oneshot->signals = loop_signals_new(oneshot->loop, list, on_signal, oneshot, err);
    return oneshot->signals ? 0 : -1;
}

static int oneshot_watch_cancel(struct oneshot *oneshot, struct err *err)
{
    if (oneshot->options->cancel_fd < 0)
        return 0;
    oneshot->cancel = loop_watch_new(oneshot->loop, oneshot->options->cancel_fd, LOOP_READ,
                                     on_cancel, oneshot, err);
    return oneshot->cancel ? 0 : err_wrap(err, "watching for cancellation");
}

static void oneshot_start_clock(struct oneshot *oneshot)
{
    if (!oneshot->options->timeout_ns)
        return;
    oneshot->timeout = loop_timer_new(oneshot->loop, on_timeout, oneshot);
    loop_timer_start(oneshot->timeout, oneshot->options->timeout_ns);
}

static int oneshot_start_feed(struct oneshot *oneshot, struct err *err)
{
    const struct oneshot_options *options = oneshot->options;

    if (options->stdio == ONESHOT_INHERIT)
        return 0;
    switch (options->input) {
    case ONESHOT_INPUT_NULL:
        return 0;
    case ONESHOT_INPUT_DATA:
        oneshot->feed = feed_new_data(oneshot->process, options->input_data, options->input_len);
        return 0;
    case ONESHOT_INPUT_FD:
        oneshot->feed = feed_new_fd(oneshot->loop, oneshot->process, options->input_fd, err);
        return oneshot->feed ? 0 : err_wrap(err, "relaying input");
    }
    return err_set(err, ERR_BUG, "unknown kind of input %d", (int)options->input);
}

static int oneshot_take_terminal(struct oneshot *oneshot, struct err *err)
{
    if (oneshot->options->stdio != ONESHOT_TTY || oneshot->options->terminal_fd < 0)
        return 0;
    return terminal_raw(&oneshot->terminal, oneshot->options->terminal_fd, err);
}

static int oneshot_start_process(struct oneshot *oneshot, struct err *err)
{
    const struct oneshot_options *options = oneshot->options;
    static const enum process_stdio stdio[] = {
        [ONESHOT_PIPES] = PROCESS_PIPES,
        [ONESHOT_TTY] = PROCESS_TTY,
        [ONESHOT_INHERIT] = PROCESS_FDS,
    };
    struct termios like;
    bool has_terminal = options->terminal_fd >= 0 && tcgetattr(options->terminal_fd, &like) == 0;
    struct process_options process = {
        .loop = oneshot->loop,
        .sandbox = options->sandbox,
        .argv = options->argv,
        .program = options->program,
        .env = options->env,
        .cwd = options->cwd,
        .stdio = stdio[options->stdio],
        .input = options->input == ONESHOT_INPUT_NULL ? PROCESS_STDIN_NULL : PROCESS_STDIN_PIPE,
        .fds = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO},
        .size = has_terminal ? terminal_size(options->terminal_fd) : options->size,
        .tty_like = has_terminal ? &like : NULL,
        .limits = oneshot->limits.rlimits,
        .cgroup = limits_cgroup_fd(&oneshot->limits),
        .drain = options->drain,
        .events = &oneshot->events,
        .data = oneshot,
    };

    oneshot->process = process_start(&process, err);
    return oneshot->process ? 0 : -1;
}

static int oneshot_start(struct oneshot *oneshot, struct err *err)
{
    if (!oneshot->loop)
        oneshot->loop = oneshot->own_loop = loop_new(err);
    if (!oneshot->loop)
        return -1;
    oneshot->result.capture = capture_new(oneshot->options->max_output);
    limits_open(&oneshot->options->limits, oneshot->options->cgroup_base, &oneshot->limits);
    /* Signals first: one that comes between is not lost, but waits for the loop. */
    if (oneshot_watch_signals(oneshot, err) || oneshot_start_process(oneshot, err))
        return -1;
    oneshot_start_clock(oneshot);
    if (oneshot_watch_cancel(oneshot, err) || oneshot_take_terminal(oneshot, err))
        return -1;
    return oneshot_start_feed(oneshot, err);
}

static uint64_t timeval_ns(const struct timeval *time)
{
    return (uint64_t)time->tv_sec * CLOCK_NS_PER_S + (uint64_t)time->tv_usec * 1000;
}

static void result_set_usage(struct oneshot_result *result, const struct process_end *end)
{
    const struct rusage *usage = &end->usage;

    result->usage_known = end->usage_known;
    result->usage = (struct oneshot_usage){
        .user_ns = timeval_ns(&usage->ru_utime),
        .system_ns = timeval_ns(&usage->ru_stime),
        .memory_peak_kb = result->limits.memory_peak ? result->limits.memory_peak / 1024
                                                     : (uint64_t)usage->ru_maxrss,
        .voluntary_switches = (uint64_t)usage->ru_nvcsw,
        .involuntary_switches = (uint64_t)usage->ru_nivcsw,
        .bytes_written = end->bytes_written,
    };
}

static void result_set_end(struct oneshot_result *result, const struct oneshot *oneshot)
{
    const struct process_end *end = &oneshot->end;

    result->exit_code = end->how == PROCESS_EXITED ? end->code : -1;
    result->signal = end->how == PROCESS_SIGNALED ? end->signal : 0;
    result->failed = end->how == PROCESS_FAILED_TO_START;
    result->stage = end->stage;
    result->failure = end->failure;
    if (oneshot->stop == STOP_TIMEOUT)
        result->end = ONESHOT_TIMED_OUT;
    else if (oneshot->stop == STOP_CANCEL)
        result->end = ONESHOT_CANCELLED;
    else if (denials_by_sandbox(&result->denials))
        result->end = ONESHOT_DENIED;
    else if (result->failed)
        result->end = ONESHOT_FAILED_TO_START;
    else
        result->end = result->signal ? ONESHOT_SIGNALED : ONESHOT_EXITED;
    result->cancel_signal = oneshot->stop_signal;
}

/* As a C string: the readers of lines stop at a NUL. Caller frees. */
static char *capture_text(struct capture *capture, enum stream stream)
{
    AUTO(buf_done) struct buf text = {0};

    buf_init(&text, SIZE_MAX / 2);
    capture_render(capture, stream, &text);
    for (size_t i = 0; i < text.len; i++)
        if (!text.data[i])
            text.data[i] = ' ';
    return buf_take(&text);
}

static void result_set_denials(struct oneshot_result *result, const struct oneshot *oneshot)
{
    const struct oneshot_options *options = oneshot->options;
    const struct process_end *end = &oneshot->end;
    AUTO_FREE char *out = NULL;
    AUTO_FREE char *errors = NULL;
    struct denial_input input = {
        .access = options->access,
        .cwd = options->cwd,
        .end = end,
        .program = options->program ? options->program : options->argv[0],
    };

    if (end->how == PROCESS_EXITED && end->code == 0)
        return;
    if (options->access) {
        input.texts[STREAM_STDOUT] = out = capture_text(result->capture, STREAM_STDOUT);
        input.texts[STREAM_STDERR] = errors = capture_text(result->capture, STREAM_STDERR);
    }
    denials_find(&input, &result->denials);
}

static void oneshot_finish(struct oneshot *oneshot, struct oneshot_result *ret)
{
    struct oneshot_result *result = &oneshot->result;

    limits_report(&oneshot->limits, &oneshot->end, &result->limits);
    result_set_usage(result, &oneshot->end);
    result_set_denials(result, oneshot);
    result_set_end(result, oneshot);
    result->wall_ns = oneshot->end.ended_ns - oneshot->end.started_ns;
    result->drain_cut = oneshot->end.drain_cut;
    result->limits_asked = oneshot->options->limits;
    result->stdio = oneshot->options->stdio;
    result->sandbox = oneshot->options->sandbox;
    *ret = *result;
    *result = (struct oneshot_result){0};
}

int oneshot_run(const struct oneshot_options *options, struct oneshot_result *ret, struct err *err)
{
    AUTO(oneshot_done)
    struct oneshot oneshot = {
        .options = options,
        .loop = options->loop,
        .terminal = {.fd = -1},
        .events = {.on_started = on_started,
                   .on_output = on_output,
                   .on_input = on_input,
                   .on_end = on_end},
    };

    if (!options->argv || !options->argv[0])
        return err_set(err, ERR_INVALID, "there is no command to run");
    if (oneshot_start(&oneshot, err) || loop_run(oneshot.loop, &oneshot.is_over, err))
        return -1;
    oneshot_finish(&oneshot, ret);
    return 0;
}

void oneshot_result_done(struct oneshot_result *result)
{
    capture_free(result->capture);
    denials_done(&result->denials);
    result->capture = NULL;
}

/* 126 and 127: POSIX XCU 2.8.2; 124 and 125: as timeout(1) and env(1) do. */
int oneshot_exit_code(const struct oneshot_result *result)
{
    if (result->end == ONESHOT_TIMED_OUT)
        return 124;
    if (result->end == ONESHOT_CANCELLED)
        return 128 + (result->cancel_signal ? result->cancel_signal : SIGTERM);
    if (result->failed && result->stage != LAUNCH_STAGE_EXEC)
        return 125;
    if (result->failed)
        return result->failure.sys == ENOENT ? 127 : 126;
    return result->signal ? 128 + result->signal : result->exit_code;
}
