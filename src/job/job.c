/* See session.h. A process, the output that it leaves, and what waits to be its input. The process
 * is there until its end, the rest until the session is freed:
 *
 *     session_start --> process runs --> on_end: end is kept, output finished --> session_free
 *                         |    ^
 *       session_write --> pending --(INPUT_ROOM)--> process
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
#include "process/process_end.h"

#include <stdlib.h>

enum session_input {
    INPUT_IS_OPEN,
    INPUT_IS_CLOSING, /* behind what is pending */
    INPUT_IS_CLOSED,  /* or there never was one */
};

struct session {
    struct session_info info; /* owns its texts; what can change is found when asked */
    struct process *process;  /* NULL once it has ended */
    struct process_end end;
    bool has_end;
    struct bounds bounds;
    struct output *output;
    struct unread *unread;
    struct screen *screen; /* NULL: none */
    struct buf pending;    /* input that the process had no room for */
    struct write_ids writes;
    enum session_input input;
    bool has_refused;
    bool is_terminated; /* its end was asked for */
    struct session_watch *watches;
};

/* --- being told --- */

void session_watch(struct session *session, struct session_watch *watch)
{
    watch->previous = NULL;
    watch->next = session->watches;
    if (watch->next)
        watch->next->previous = watch;
    session->watches = watch;
}

void session_unwatch(struct session *session, struct session_watch *watch)
{
    if (watch->next)
        watch->next->previous = watch->previous;
    if (watch->previous)
        watch->previous->next = watch->next;
    else
        session->watches = watch->next;
}

static void session_tell(const struct session *session, enum session_event event)
{
    for (struct session_watch *watch = session->watches; watch; watch = watch->next)
        watch->on_event(watch, event);
}

/* --- what the process does --- */

static void on_started(void *data)
{
    session_tell(data, SESSION_STARTED);
}

static void on_output(void *data, enum stream stream, const char *bytes, size_t len,
                      uint64_t offset)
{
    struct session *session = data;

    output_append(session->output, stream, bytes, len);
    while (session->screen && len) {
        size_t taken = screen_feed(session->screen, bytes, len);

        bytes += taken;
        len -= taken;
    }
}

/* Passes on what waits, as far as it goes. */
static void session_feed(struct session *session)
{
    size_t taken = process_write(session->process, session->pending.data, session->pending.len);

    buf_consume(&session->pending, taken);
    if (session->pending.len)
        return;
    buf_done(&session->pending);
    buf_init(&session->pending, SESSION_INPUT_MAX);
    if (session->input == INPUT_IS_CLOSING) {
        session->input = INPUT_IS_CLOSED;
        process_close_input(session->process);
    }
}

static void on_input(void *data, enum input_event event)
{
    struct session *session = data;

    if (event == INPUT_CLOSED) {
        session->input = INPUT_IS_CLOSED;
        buf_done(&session->pending);
    } else {
        session_feed(session);
    }
    if (session->has_refused && !session->pending.len) {
        session->has_refused = false;
        session_tell(session, SESSION_ROOM);
    }
}

static void on_exit_alone(void *data, const struct process_end *end)
{
    struct session *session = data;

    session->end = *end;
    session->has_end = true;
    session_tell(session, SESSION_EXITED);
}

static void on_output_end(void *data)
{
    session_tell(data, SESSION_READ_OUT);
}

static void on_end(void *data, const struct process_end *end)
{
    struct session *session = data;

    session->end = *end;
    session->has_end = true;
    bounds_end(&session->bounds, end);
    session->input = INPUT_IS_CLOSED;
    buf_done(&session->pending);
    process_free(TAKE_PTR(session->process));
    output_finish(session->output);
    session_tell(session, SESSION_ENDED);
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

static void session_auto_free(struct session **slot)
{
    session_free(*slot);
}

static struct session *session_new(const struct session_options *options)
{
    const struct process_options *process = options->process;
    struct session *session = alloc_zero(1, sizeof *session);

    session->info = (struct session_info){
        .id = options->id,
        .owner = options->owner,
        .command = alloc_str(options->command),
        .cwd = alloc_str(process->cwd),
        .has_tty = process->stdio == PROCESS_TTY,
        .started_ns = clock_now_ns(),
    };
    bounds_open(&session->bounds, options->limits, options->cgroup_base, options->access);
    session->input = session->info.has_tty || process->input == PROCESS_STDIN_PIPE
                         ? INPUT_IS_OPEN
                         : INPUT_IS_CLOSED;
    session->output = output_new(&options->output);
    session->unread = unread_new(session->output, options->output.memory_max);
    if (options->screen && session->info.has_tty)
        session->screen =
            screen_new(&(struct screen_options){.size = process->size, .limits = *options->screen});
    buf_init(&session->pending, SESSION_INPUT_MAX);
    return session;
}

struct session *session_start(const struct session_options *options, struct err *err)
{
    AUTO(session_auto_free) struct session *session = session_new(options);
    struct process_options process = *options->process;

    process.events = &events;
    process.data = session;
    process.drain = (struct process_drain){.quiet_ns = SESSION_DRAIN_QUIET_NS,
                                           .total_ns = PROCESS_DRAIN_TOTAL_NS};
    process.limits = session->bounds.limits.rlimits;
    process.cgroup = limits_cgroup_fd(&session->bounds.limits);
    session->process = process_start(&process, err);
    return session->process ? TAKE_PTR(session) : NULL;
}

void session_free(struct session *session)
{
    if (!session)
        return;
    process_free(session->process);
    bounds_done(&session->bounds);
    unread_free(session->unread);
    output_free(session->output);
    screen_free(session->screen);
    buf_done(&session->pending);
    write_ids_done(&session->writes);
    free((char *)session->info.command);
    free((char *)session->info.cwd);
    free(session);
}

/* --- input --- */

static void session_take(struct session *session, const char *bytes, size_t len)
{
    size_t taken = 0;

    if (!session->pending.len)
        taken = process_write(session->process, bytes, len);
    buf_append(&session->pending, bytes + taken, len - taken);
}

/* A command without a terminal has no other way to be given a Ctrl-C. */
static bool is_interrupt(const struct session *session, const char *bytes, size_t len)
{
    return !session->info.has_tty && len == 1 && *bytes == '\003';
}

/* Whether the bytes can be taken, and if not, why. */
static enum session_written session_can_write(struct session *session, size_t len)
{
    if (session->input != INPUT_IS_OPEN)
        return SESSION_NO_INPUT;
    if (len <= SESSION_INPUT_MAX - session->pending.len)
        return SESSION_WRITTEN;
    session->has_refused = true;
    return SESSION_NO_ROOM;
}

int session_write(struct session *session, const void *bytes, size_t len, const char *name,
                  enum session_written *ret, struct err *err)
{
    enum session_written written = SESSION_INTERRUPTED;

    if (!session->process) {
        *ret = SESSION_IS_OVER;
        return 0;
    }
    if (name && write_ids_has(&session->writes, name)) {
        *ret = SESSION_WRITTEN_BEFORE;
        return 0;
    }
    if (is_interrupt(session, bytes, len)) {
        if (process_interrupt(session->process, err))
            return -1;
    } else {
        written = session_can_write(session, len);
        if (written == SESSION_WRITTEN)
            session_take(session, bytes, len);
    }
    if (name && (written == SESSION_WRITTEN || written == SESSION_INTERRUPTED))
        write_ids_add(&session->writes, name);
    *ret = written;
    return 0;
}

void session_close_input(struct session *session)
{
    if (session->input != INPUT_IS_OPEN)
        return;
    session->input = INPUT_IS_CLOSING;
    if (!session->pending.len)
        session_feed(session);
}

/* --- control --- */

int session_resize(struct session *session, struct pty_size size, struct err *err)
{
    if (session->process && process_resize(session->process, size, err))
        return -1;
    if (session->process && session->screen)
        screen_resize(session->screen, size);
    return 0;
}

int session_interrupt(struct session *session, struct err *err)
{
    return session->process ? process_interrupt(session->process, err) : 0;
}

int session_signal(struct session *session, int signal, struct err *err)
{
    return session->process ? process_signal(session->process, signal, err) : 0;
}

int session_terminate(struct session *session, uint64_t grace_ns, struct err *err)
{
    if (!session->process)
        return 0;
    if (process_terminate(session->process, grace_ns, err))
        return -1;
    session->is_terminated = true;
    return 0;
}

void session_hold_output(struct session *session, bool on)
{
    for (int i = 0; session->process && i < STREAM_COUNT; i++)
        process_hold_output(session->process, (enum stream)i, on);
}

/* --- what is known --- */

void session_info(const struct session *session, struct session_info *ret)
{
    *ret = session->info;
    ret->has_input = session->input == INPUT_IS_OPEN;
    ret->input_len = session->pending.len;
}

pid_t session_pid(const struct session *session)
{
    return session->process ? process_pid(session->process) : 0;
}

struct output *session_output(const struct session *session)
{
    return session->output;
}

struct unread *session_unread(const struct session *session)
{
    return session->unread;
}

const struct screen *session_screen(const struct session *session)
{
    return session->screen;
}

const struct process_end *session_end(const struct session *session)
{
    return session->has_end ? &session->end : NULL;
}

const struct limits *session_limits(const struct session *session, struct limits_report *ret)
{
    *ret = session->bounds.report;
    return &session->bounds.limits.asked;
}

void session_denials(const struct session *session, struct denials *ret)
{
    bounds_denials(&session->bounds,
                   &(struct bounds_denial){.end = &session->end,
                                           .program = session->info.command,
                                           .cwd = session->info.cwd,
                                           .output = session->output},
                   ret);
}

bool session_is_alive(const struct session *session)
{
    return session->process && process_is_alive(session->process);
}

struct store_end session_store_end(const struct session *session)
{
    const struct process_end *end = &session->end;
    struct store_end ret = {.fate = STORE_FAILED, .number = session_exit_code(session)};

    if (session->is_terminated)
        ret.fate = STORE_TERMINATED;
    else if (end->how == PROCESS_EXITED)
        ret.fate = STORE_EXITED;
    else if (end->how == PROCESS_SIGNALED)
        ret = (struct store_end){.fate = STORE_SIGNALED, .number = end->signal};
    return ret;
}

int session_exit_code(const struct session *session)
{
    return process_end_exit_code(&session->end);
}
