/* See oneshot.h. A process, a capture, a clock, and up to three reasons to end early: time is up,
 * somebody cancels, a signal comes. Whatever comes first is the reason; the command's own end is
 * kept next to it. The loop runs until the process says that it is over.
 *
 * It does not decide what may run, and it does not show anything to anybody. */
#include "job/oneshot.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "job/oneshot_part.h"
#include "output/capture.h"
#include "process/stdin_pump.h"

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

void oneshot_free(struct oneshot *oneshot)
{
    if (!oneshot)
        return;
    terminal_restore(&oneshot->terminal);
    loop_signals_free(oneshot->signals);
    loop_watch_free(oneshot->cancel);
    loop_timer_free(oneshot->timeout);
    loop_timer_free(oneshot->patience);
    loop_timer_free(oneshot->told);
    stdin_pump_free(oneshot->stdin_pump);
    output_pump_free(oneshot->output_pump);
    process_free(oneshot->process);
    resource_limits_close(&oneshot->limits);
    oneshot_result_done(&oneshot->result);
    loop_free(oneshot->own_loop);
    free(oneshot);
}

static void oneshot_auto(struct oneshot **slot)
{
    oneshot_free(*slot);
}

static void on_started(void *data)
{
    struct oneshot *oneshot = data;

    if (oneshot->options->on_started)
        oneshot->options->on_started(oneshot->options->data);
}

static void on_output(void *data, enum stream stream, const char *bytes, size_t len,
                      uint64_t offset)
{
    struct oneshot *oneshot = data;

    capture_add(oneshot->result.capture, stream, bytes, len);
    if (oneshot->options->on_output)
        oneshot->options->on_output(oneshot->options->data, stream, bytes, len, offset);
    if (oneshot->output_pump)
        output_pump_write(oneshot->output_pump, stream, bytes, len);
}

static void on_input(void *data, enum input_event event)
{
    struct oneshot *oneshot = data;

    if (!oneshot->stdin_pump)
        return;
    if (event == INPUT_ROOM)
        stdin_pump_on_room(oneshot->stdin_pump);
    else
        stdin_pump_on_closed(oneshot->stdin_pump);
}

static void on_told(void *data)
{
    struct oneshot *oneshot = data;

    oneshot->options->on_over(oneshot->options->data);
}

/* Who waits is told from the loop, when nothing of ours is being called any more, so that it may
 * free us. */
static void oneshot_set_over(struct oneshot *oneshot)
{
    if (oneshot->is_over)
        return;
    oneshot->is_over = true;
    if (!oneshot->options->on_over)
        return;
    oneshot->told = loop_timer_new(oneshot->loop, on_told, oneshot);
    loop_timer_start(oneshot->told, 0);
}

static void on_relayed(void *data)
{
    struct oneshot *oneshot = data;

    if (oneshot->has_ended)
        oneshot_set_over(oneshot);
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
    if (!oneshot_is_relaying(oneshot)) {
        oneshot_set_over(oneshot);
    } else if (oneshot->stop != STOP_NONE) {
        oneshot->patience = loop_timer_new(oneshot->loop, on_no_patience, oneshot);
        loop_timer_start(oneshot->patience, patience_ns ? patience_ns : PROCESS_DRAIN_TOTAL_NS);
    }
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
        oneshot->stdin_pump =
            stdin_pump_new_data(oneshot->process, options->input_data, options->input_len);
        return 0;
    case ONESHOT_INPUT_FD:
        oneshot->stdin_pump =
            stdin_pump_new_fd(oneshot->loop, oneshot->process, options->input_fd, err);
        return oneshot->stdin_pump ? 0 : err_wrap(err, "relaying input");
    }
    return err_set(err, ERR_BUG, "unknown kind of input %d", (int)options->input);
}

static int oneshot_start_relay(struct oneshot *oneshot, struct err *err)
{
    struct output_pump_options relay = {
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
        oneshot->output_pump = output_pump_new(&relay, err);
    return is_wanted && !oneshot->output_pump ? err_wrap(err, "passing output on") : 0;
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
        .cgroup = resource_limits_cgroup_fd(&oneshot->limits),
        .drain = options->drain,
        .events = &oneshot->events,
        .data = oneshot,
    };

    oneshot->process = process_start(&process, err);
    return oneshot->process ? 0 : -1;
}

static int oneshot_begin(struct oneshot *oneshot, struct err *err)
{
    if (!oneshot->loop)
        oneshot->loop = oneshot->own_loop = loop_new(err);
    if (!oneshot->loop)
        return -1;
    oneshot->result.capture = capture_new(oneshot->options->max_output);
    resource_limits_open(&oneshot->options->limits, oneshot->options->cgroup_base,
                         &oneshot->limits);
    /* Signals first: one that comes between is not lost, but waits for the loop. */
    if (oneshot_watch_signals(oneshot, err) || oneshot_start_process(oneshot, err))
        return -1;
    oneshot_start_clock(oneshot);
    if (oneshot_start_relay(oneshot, err) || oneshot_watch_cancel(oneshot, err) ||
        oneshot_take_terminal(oneshot, err))
        return -1;
    return oneshot_start_feed(oneshot, err);
}

struct oneshot *oneshot_start(const struct oneshot_options *options, struct err *err)
{
    AUTO(oneshot_auto) struct oneshot *oneshot = alloc_zero(1, sizeof *oneshot);

    *oneshot = (struct oneshot){
        .options = options,
        .loop = options->loop,
        .terminal = {.fd = -1},
        .events = {.on_started = on_started,
                   .on_output = on_output,
                   .on_input = on_input,
                   .on_end = on_end},
    };
    if (!options->argv || !options->argv[0])
        err_set(err, ERR_INVALID, "there is no command to run");
    else if (oneshot_begin(oneshot, err) == 0)
        return TAKE_PTR(oneshot);
    return NULL;
}

void oneshot_take(struct oneshot *oneshot, struct oneshot_result *ret)
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
    for (int i = 0; i < STREAM_COUNT && oneshot->output_pump; i++)
        result->output_pump_error[i] = output_pump_error(oneshot->output_pump, (enum stream)i);
    *ret = *result;
    *result = (struct oneshot_result){0};
}

int oneshot_run(const struct oneshot_options *options, struct oneshot_result *ret, struct err *err)
{
    AUTO(oneshot_auto) struct oneshot *oneshot = oneshot_start(options, err);

    if (!oneshot || loop_run(oneshot->loop, &oneshot->is_over, err))
        return -1;
    oneshot_take(oneshot, ret);
    return 0;
}
