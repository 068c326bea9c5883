/* Reasons to end a command early, or to hold it: time is up, somebody cancels, a signal comes to
 * us. Whatever comes first is the reason that the result names; see oneshot.h. */
#include "job/oneshot_part.h"

#include <signal.h>

#define SIGNALS_MAX 8

bool oneshot_is_relaying(const struct oneshot *oneshot)
{
    return oneshot->output_pump && !output_pump_is_empty(oneshot->output_pump);
}

void oneshot_abandon(struct oneshot *oneshot)
{
    if (!oneshot_is_relaying(oneshot))
        return;
    oneshot->result.drain_cut = true;
    output_pump_abandon(oneshot->output_pump);
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
    oneshot_cancel(oneshot);
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
int oneshot_watch_signals(struct oneshot *oneshot, struct err *err)
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

int oneshot_watch_cancel(struct oneshot *oneshot, struct err *err)
{
    if (oneshot->options->cancel_fd < 0)
        return 0;
    oneshot->cancel = loop_watch_new(oneshot->loop, oneshot->options->cancel_fd, LOOP_READ,
                                     on_cancel, oneshot, err);
    return oneshot->cancel ? 0 : err_wrap(err, "watching for cancellation");
}

void oneshot_start_clock(struct oneshot *oneshot)
{
    if (!oneshot->options->timeout_ns)
        return;
    oneshot->timeout = loop_timer_new(oneshot->loop, on_timeout, oneshot);
    loop_timer_start(oneshot->timeout, oneshot->options->timeout_ns);
}

void oneshot_cancel(struct oneshot *oneshot)
{
    if (process_is_running(oneshot->process))
        oneshot_stop(oneshot, STOP_CANCEL, 0);
    else
        oneshot_abandon(oneshot);
}
