/* The calls of process.h that do something to a process which runs: input, signals, the flow of its
 * output. None of them calls back. */
#include "process/process.h"

#include "base/clock.h"
#include "loop/loop.h"
#include "process/process_state.h"

#include <poll.h>
#include <signal.h>

bool process_is_waiting(const struct process *process)
{
    return command_stdio_is_held(&process->stdio) && !process->kill_at_ns && !process->is_killed;
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
    command_stdio_close_stream(&process->stdio, stream);
    if (command_stdio_is_read_out(&process->stdio))
        drain_stop(&process->drain);
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

/* Nothing is left that a signal could reach. */
static bool process_is_over(const struct process *process)
{
    return process->lingers ? process->is_gone : process->has_report;
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

    if (process_is_over(process) || process->is_killed)
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
