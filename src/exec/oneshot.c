/* See oneshot.h. A process, a capture, a clock, and up to three reasons to end early: time is up,
 * somebody cancels, a signal comes. Whatever comes first is the reason; the command's own end is
 * kept next to it. The loop runs until the process says that it is over.
 *
 * It does not decide what may run, and it does not show anything to anybody. */
#include "exec/oneshot.h"

#include "base/auto.h"
#include "base/clock.h"
#include "exec/capture.h"
#include "exec/feed.h"
#include "exec/oneshot_result.h"
#include "exec/relay.h"
#include "exec/terminal.h"
#include "loop/loop.h"

#include <signal.h>

#define SIGNALS_MAX 8

struct oneshot {
    const struct oneshot_options *options;
    struct loop *loop;
    struct loop *own_loop;
    struct limits_scope limits;
    struct process *process;
    struct process_events events;
    struct feed *feed;
    struct relay *relay; /* NULL without one */
    struct terminal terminal;
    struct loop_timer *timeout;
    struct loop_timer *patience; /* with the relay, after a command that had to be stopped */
    struct loop_watch *cancel;
    struct loop_signals *signals;
    enum stop_reason stop;
    int stop_signal;
    struct oneshot_result result; /* as far as known while it runs */
    struct process_end end;
    bool has_ended;
    bool is_over; /* and everything was passed on */
};

void oneshot_defaults(struct oneshot_options *options)
{
    *options = (struct oneshot_options){
        .input_fd = -1,
        .terminal_fd = -1,
        .cancel_fd = -1,
        .relay = {-1, -1},
        .kill_after_ns = ONESHOT_KILL_AFTER_NS,
        .max_output = CAPTURE_DEFAULT_MAX,
    };
}

static void oneshot_done(struct oneshot *oneshot)
{
    terminal_restore(&oneshot->terminal);
    loop_signals_free(oneshot->signals);
    loop_watch_free(oneshot->cancel);
    loop_timer_free(oneshot->timeout);
    loop_timer_free(oneshot->patience);
    feed_free(oneshot->feed);
    relay_free(oneshot->relay);
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
    if (oneshot->relay)
        relay_write(oneshot->relay, stream, bytes, len);
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

static bool oneshot_is_relaying(const struct oneshot *oneshot)
{
    return oneshot->relay && !relay_is_empty(oneshot->relay);
}

static void on_relayed(void *data)
{
    struct oneshot *oneshot = data;

    oneshot->is_over = oneshot->has_ended;
}

/* The command has ended, and who reads its output lets us wait. */
static void oneshot_abandon(struct oneshot *oneshot)
{
    if (!oneshot_is_relaying(oneshot))
        return;
    oneshot->result.drain_cut = true;
    relay_abandon(oneshot->relay);
}

static void on_no_patience(void *data)
{
    oneshot_abandon(data);
}

static void on_end(void *data, const struct process_end *end)
{
    struct oneshot *oneshot = data;
    uint64_t patience_ns = oneshot->options->drain.total_ns;

    oneshot->end = *end;
    oneshot->has_ended = true;
    oneshot->is_over = !oneshot_is_relaying(oneshot);
    if (!oneshot->is_over && oneshot->stop != STOP_NONE) {
        oneshot->patience = loop_timer_new(oneshot->loop, on_no_patience, oneshot);
        loop_timer_start(oneshot->patience, patience_ns ? patience_ns : PROCESS_DRAIN_TOTAL_NS);
    }
}

/* A failure to ask for the end cannot be helped from here: SIGKILL follows. */
static void oneshot_stop(struct oneshot *oneshot, enum stop_reason reason, int signal)
{
    struct err ignored;

    if (oneshot->stop == STOP_NONE) {
        oneshot->stop = reason;
        oneshot->stop_signal = signal;
    }
    if (process_terminate(oneshot->process, oneshot->options->kill_after_ns, &ignored))
        process_terminate(oneshot->process, 0, &ignored);
}

static void on_timeout(void *data)
{
    struct oneshot *oneshot = data;

    if (process_is_running(oneshot->process))
        oneshot_stop(oneshot, STOP_TIMEOUT, 0);
}

static void on_cancel(void *data, int fd, unsigned ready)
{
    struct oneshot *oneshot = data;

    loop_watch_set(oneshot->cancel, LOOP_NOTHING);
    if (process_is_running(oneshot->process))
        oneshot_stop(oneshot, STOP_CANCEL, 0);
    else
        oneshot_abandon(oneshot);
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

    if (!process_is_running(oneshot->process)) {
        if (signal != SIGWINCH && signal != SIGTSTP)
            oneshot_abandon(oneshot);
        return;
    }
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

static int oneshot_start_relay(struct oneshot *oneshot, struct err *err)
{
    struct relay_options relay = {
        .loop = oneshot->loop,
        .process = oneshot->process,
        .on_empty = on_relayed,
        .data = oneshot,
    };
    bool is_wanted = false;

    for (int i = 0; i < STREAM_COUNT; i++) {
        relay.fds[i] = oneshot->options->relay[i];
        is_wanted |= relay.fds[i] >= 0;
    }
    if (is_wanted)
        oneshot->relay = relay_new(&relay, err);
    return is_wanted && !oneshot->relay ? err_wrap(err, "passing output on") : 0;
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
    if (oneshot_start_relay(oneshot, err) || oneshot_watch_cancel(oneshot, err) ||
        oneshot_take_terminal(oneshot, err))
        return -1;
    return oneshot_start_feed(oneshot, err);
}

static void oneshot_finish(struct oneshot *oneshot, struct oneshot_result *ret)
{
    struct oneshot_result *result = &oneshot->result;
    struct oneshot_facts facts = {
        .options = oneshot->options,
        .limits = &oneshot->limits,
        .end = &oneshot->end,
        .stop = oneshot->stop,
        .stop_signal = oneshot->stop_signal,
    };

    oneshot_result_fill(result, &facts);
    for (int i = 0; i < STREAM_COUNT && oneshot->relay; i++)
        result->relay_error[i] = relay_error(oneshot->relay, (enum stream)i);
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
