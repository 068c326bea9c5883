/* See job.h. A process, the output that it leaves, and what waits to be its input. The process
 * is there until its end, the rest until the job is freed:
 *
 *     job_start --> process runs --> on_end: end is kept, output finished --> job_free
 *                         |    ^
 *       job_write --> pending --(INPUT_ROOM)--> process
 *
 * Nobody is told anything out of a call that they make: events come from the loop only. */
#include "job/job.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "job/job_limits.h"
#include "job/write_ids.h"
#include "output/model_cursor.h"

#include <stdlib.h>

enum session_input {
    INPUT_IS_OPEN,
    INPUT_IS_CLOSING, /* behind what is pending */
    INPUT_IS_CLOSED,  /* or there never was one */
};

struct job {
    struct job_info info;    /* owns its texts; what can change is found when asked */
    struct process *process; /* NULL once it has ended */
    struct process_end end;
    bool has_end;
    struct job_limits bounds;
    struct output *output;
    struct model_cursor *unread;
    struct screen *screen; /* NULL: none */
    struct buf pending;    /* input that the process had no room for */
    struct write_ids writes;
    enum session_input input;
    bool has_refused;
    bool is_terminated; /* its end was asked for */
    struct list watches;
};

/* --- being told --- */

void job_watch(struct job *job, struct job_watch *watch)
{
    list_add(&job->watches, &watch->link);
}

void job_unwatch(struct job_watch *watch)
{
    list_remove(&watch->link);
}

static void job_notify(const struct job *job, enum job_event event)
{
    struct job_watch *watch;

    list_for_each(watch, &job->watches, link)
        watch->on_event(watch, event);
}

/* --- what the process does --- */

static void on_started(void *data)
{
    job_notify(data, JOB_STARTED);
}

static void on_output(void *data, enum stream stream, const char *bytes, size_t len,
                      uint64_t offset)
{
    struct job *job = data;

    output_append(job->output, stream, bytes, len);
    while (job->screen && len) {
        size_t taken = screen_feed(job->screen, bytes, len);

        bytes += taken;
        len -= taken;
    }
}

/* Passes on what waits, as far as it goes. */
static void session_feed(struct job *job)
{
    size_t taken = process_write(job->process, job->pending.data, job->pending.len);

    buf_consume(&job->pending, taken);
    if (job->pending.len)
        return;
    buf_done(&job->pending);
    buf_init(&job->pending, JOB_INPUT_MAX);
    if (job->input == INPUT_IS_CLOSING) {
        job->input = INPUT_IS_CLOSED;
        process_close_input(job->process);
    }
}

static void on_input(void *data, enum input_event event)
{
    struct job *job = data;

    if (event == INPUT_CLOSED) {
        job->input = INPUT_IS_CLOSED;
        buf_done(&job->pending);
    } else {
        session_feed(job);
    }
    if (job->has_refused && !job->pending.len) {
        job->has_refused = false;
        job_notify(job, JOB_ROOM);
    }
}

static void on_exit_alone(void *data, const struct process_end *end)
{
    struct job *job = data;

    job->end = *end;
    job->has_end = true;
    job_notify(job, JOB_EXITED);
}

static void on_output_end(void *data)
{
    job_notify(data, JOB_READ_OUT);
}

static void on_end(void *data, const struct process_end *end)
{
    struct job *job = data;

    job->end = *end;
    job->has_end = true;
    job_limits_end(&job->bounds, end);
    job->input = INPUT_IS_CLOSED;
    buf_done(&job->pending);
    process_free(TAKE_PTR(job->process));
    output_finish(job->output);
    job_notify(job, JOB_ENDED);
}

static const struct process_events events = {
    .on_started = on_started,
    .on_output = on_output,
    .on_input = on_input,
    .on_exit = on_exit_alone,
    .on_output_end = on_output_end,
    .on_end = on_end,
};

/* --- life --- */

static void job_auto_free(struct job **slot)
{
    job_free(*slot);
}

static struct job *job_new(const struct job_options *options)
{
    const struct process_options *process = options->process;
    struct job *job = alloc_zero(1, sizeof *job);

    job->info = (struct job_info){
        .id = options->id,
        .owner = options->owner,
        .command = alloc_str(options->command),
        .cwd = alloc_str(process->cwd),
        .has_tty = process->stdio == PROCESS_TTY,
        .started_ns = clock_now_ns(),
    };
    job_limits_open(&job->bounds, options->limits, options->cgroup_base, options->access);
    job->input =
        job->info.has_tty || process->input == PROCESS_STDIN_PIPE ? INPUT_IS_OPEN : INPUT_IS_CLOSED;
    job->output = output_new(&options->output);
    job->unread = model_cursor_new(job->output, options->output.memory_max);
    if (options->screen && job->info.has_tty)
        job->screen =
            screen_new(&(struct screen_options){.size = process->size, .limits = *options->screen});
    buf_init(&job->pending, JOB_INPUT_MAX);
    return job;
}

struct job *job_start(const struct job_options *options, struct err *err)
{
    AUTO(job_auto_free) struct job *job = job_new(options);
    struct process_options process = *options->process;

    process.events = &events;
    process.data = job;
    process.drain =
        (struct process_drain){.quiet_ns = JOB_DRAIN_QUIET_NS, .total_ns = PROCESS_DRAIN_TOTAL_NS};
    process.limits = job->bounds.limits.rlimits;
    process.cgroup = resource_limits_cgroup_fd(&job->bounds.limits);
    job->process = process_start(&process, err);
    return job->process ? TAKE_PTR(job) : NULL;
}

void job_free(struct job *job)
{
    if (!job)
        return;
    process_free(job->process);
    job_limits_done(&job->bounds);
    model_cursor_free(job->unread);
    output_free(job->output);
    screen_free(job->screen);
    buf_done(&job->pending);
    write_ids_done(&job->writes);
    free((char *)job->info.command);
    free((char *)job->info.cwd);
    free(job);
}

/* --- input --- */

static void session_take(struct job *job, const char *bytes, size_t len)
{
    size_t taken = 0;

    if (!job->pending.len)
        taken = process_write(job->process, bytes, len);
    buf_append(&job->pending, bytes + taken, len - taken);
}

/* A command without a terminal has no other way to be given a Ctrl-C. */
static bool is_interrupt(const struct job *job, const char *bytes, size_t len)
{
    return !job->info.has_tty && len == 1 && *bytes == '\003';
}

/* Whether the bytes can be taken, and if not, why. */
static enum job_written session_can_write(struct job *job, size_t len)
{
    if (job->input != INPUT_IS_OPEN)
        return JOB_NO_INPUT;
    if (len <= JOB_INPUT_MAX - job->pending.len)
        return JOB_WRITTEN;
    job->has_refused = true;
    return JOB_NO_ROOM;
}

int job_write(struct job *job, const void *bytes, size_t len, const char *name,
              enum job_written *ret, struct err *err)
{
    enum job_written written = JOB_INTERRUPTED;

    if (!job->process) {
        *ret = JOB_IS_OVER;
        return 0;
    }
    if (name && write_ids_has(&job->writes, name)) {
        *ret = JOB_WRITTEN_BEFORE;
        return 0;
    }
    if (is_interrupt(job, bytes, len)) {
        if (process_interrupt(job->process, err))
            return -1;
    } else {
        written = session_can_write(job, len);
        if (written == JOB_WRITTEN)
            session_take(job, bytes, len);
    }
    if (name && (written == JOB_WRITTEN || written == JOB_INTERRUPTED))
        write_ids_add(&job->writes, name);
    *ret = written;
    return 0;
}

void job_close_input(struct job *job)
{
    if (job->input != INPUT_IS_OPEN)
        return;
    job->input = INPUT_IS_CLOSING;
    if (!job->pending.len)
        session_feed(job);
}

/* --- control --- */

int job_resize(struct job *job, struct pty_size size, struct err *err)
{
    if (job->process && process_resize(job->process, size, err))
        return -1;
    if (job->process && job->screen)
        screen_resize(job->screen, size);
    return 0;
}

int job_interrupt(struct job *job, struct err *err)
{
    return job->process ? process_interrupt(job->process, err) : 0;
}

int job_signal(struct job *job, int signal, struct err *err)
{
    return job->process ? process_signal(job->process, signal, err) : 0;
}

int job_terminate(struct job *job, uint64_t grace_ns, struct err *err)
{
    if (!job->process)
        return 0;
    if (process_terminate(job->process, grace_ns, err))
        return -1;
    job->is_terminated = true;
    return 0;
}

void job_hold_output(struct job *job, bool on)
{
    for (int i = 0; job->process && i < STREAM_COUNT; i++)
        process_hold_output(job->process, (enum stream)i, on);
}

/* --- what is known --- */

void job_info(const struct job *job, struct job_info *ret)
{
    *ret = job->info;
    ret->has_input = job->input == INPUT_IS_OPEN;
    ret->input_len = job->pending.len;
}

pid_t job_pid(const struct job *job)
{
    return job->process ? process_pid(job->process) : 0;
}

struct output *job_output(const struct job *job)
{
    return job->output;
}

struct model_cursor *job_model_cursor(const struct job *job)
{
    return job->unread;
}

const struct screen *job_screen(const struct job *job)
{
    return job->screen;
}

const struct process_end *job_end(const struct job *job)
{
    return job->has_end ? &job->end : NULL;
}

const struct resource_limits *job_resource_limits(const struct job *job,
                                                  struct resource_limits_report *ret)
{
    *ret = job->bounds.report;
    return &job->bounds.limits.asked;
}

void job_denials(const struct job *job, struct denials *ret)
{
    job_limits_denials(&job->bounds,
                       &(struct job_limits_denial){.end = &job->end,
                                                   .program = job->info.command,
                                                   .cwd = job->info.cwd,
                                                   .output = job->output},
                       ret);
}

bool job_is_alive(const struct job *job)
{
    return job->process && process_is_alive(job->process);
}

struct job_outcome job_outcome(const struct job *job)
{
    const struct process_end *end = &job->end;
    struct job_outcome ret = {.fate = JOB_FATE_FAILED, .number = job_exit_code(job)};

    if (job->is_terminated)
        ret.fate = JOB_FATE_TERMINATED;
    else if (end->how == PROCESS_EXITED)
        ret.fate = JOB_FATE_EXITED;
    else if (end->how == PROCESS_SIGNALED)
        ret = (struct job_outcome){.fate = JOB_FATE_SIGNALED, .number = end->signal};
    return ret;
}

int job_exit_code(const struct job *job)
{
    return process_end_exit_code(&job->end);
}
