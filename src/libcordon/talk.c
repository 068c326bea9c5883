/* cordon_session_*(): a command to talk to, by bytes. A session of exec and one reader of it. The
 * host is told by one callback that something has changed, always from the loop: what happens
 * inside only starts a timer for it. */
#include "libcordon/engine.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "job/job.h"
#include "loop/loop.h"
#include "output/reader.h"
#include "screen/screen.h"
#include "timeline/timeline.h"
#include "workspace/workspace.h"

#include <stdlib.h>

struct cordon_session {
    struct job_watch watch; /* first, so that one is the other */
    struct cordon_engine *engine;
    struct job *job;
    size_t *in_layer; /* how many sessions that layer has; NULL: there is none */
    struct reader *reader;
    struct loop_timer *change; /* deferred call of on_change */
    struct cordon_end end;     /* once it has ended */
    char *event;               /* that was read last; NULL: none */
    char *denial;              /* then, when it was asked for; NULL: none */
    struct strv published;     /* when it was asked for */
    void (*on_change)(void *data, struct cordon_session *session);
    void *data;
};

static void on_time(void *data)
{
    struct cordon_session *session = data;

    if (session->on_change)
        session->on_change(session->data, session);
}

static void on_session(struct job_watch *watch, enum job_event event)
{
    struct cordon_session *session = (struct cordon_session *)watch;
    struct resource_limits_report report;

    if (event == JOB_ENDED) {
        end_fill(&session->end, job_end(session->job), job_exit_code(session->job));
        job_limits(session->job, &report);
        session->end.limits_hit = limits_hit(&report);
    }
    loop_timer_start(session->change, 0);
}

static void on_reader(void *data)
{
    loop_timer_start(((struct cordon_session *)data)->change, 0);
}

/* --- life --- */

void cordon_session_free(struct cordon_session *session)
{
    if (!session)
        return;
    reader_free(session->reader);
    loop_timer_free(session->change);
    job_free(session->job);
    if (session->in_layer)
        (*session->in_layer)--;
    free(session->denial);
    free(session->event);
    strv_done(&session->published);
    free(session);
}

const char *const *cordon_session_published(struct cordon_session *session)
{
    strv_done(&session->published);
    session->published = (struct strv){0};
    publications_format(job_publications(session->job), &session->published);
    return (const char *const *)strv_view(&session->published);
}

/* `*ret_sessions` as of layers_sessions(). */
static struct job *start(struct cordon_engine *engine, const struct cordon_session_options *options,
                         size_t **ret_sessions, struct err *err)
{
    struct workspace *workspace;
    struct job *job;
    AUTO_FREE char *cwd = NULL;
    struct process_options process = {
        .loop = engine->loop,
        .argv = (char *const *)options->argv,
        .stdio = options->flags & CORDON_TTY ? PROCESS_TTY : PROCESS_PIPES,
        .input = options->flags & CORDON_STDIN_PIPE ? PROCESS_STDIN_PIPE : PROCESS_STDIN_NULL,
        .size = {.rows = options->rows, .columns = options->columns},
    };
    struct resource_limits limits;
    struct job_options session = {
        .process = &process,
        .limits = &limits,
        .output = {.memory_max = OUTPUT_MEMORY_DEFAULT},
        .screen = view_limits(options->flags),
    };

    if (!options->argv || !options->argv[0]) {
        err_set(err, ERR_INVALID, "there is no command to run");
        return NULL;
    }
    workspace = policy_workspace(engine, options->policy, err);
    if (!workspace || limits_read(&limits, options->limits, err))
        return NULL;
    session.access = workspace->access;
    session.topics = workspace->topics;
    process.sandbox = workspace->sandbox;
    process.env = options->env ? (char *const *)options->env : strv_view(&workspace->env);
    process.cwd = cwd = workspace_dir(workspace, options->cwd);
    session.command = options->argv[0];
    process.asks = engine_holds(engine, workspace);
    session.is_judged = workspace_judges_execs(workspace);
    job = job_start(&session, err);
    if (!job)
        return NULL;
    engine_hold(engine, workspace, job, process.argv);
    *ret_sessions = workspace->layer ? layers_sessions(engine, workspace) : NULL;
    return job;
}

int cordon_session_start(struct cordon_engine *engine, const struct cordon_session_options *given,
                         struct cordon_session **ret_session, struct cordon_error *error)
{
    struct cordon_session_options options;
    struct cordon_session *session;
    struct job *started;
    size_t *sessions;
    struct err err;

    if (options_read(&options, sizeof options, given, &err) ||
        !(started = start(engine, &options, &sessions, &err)))
        return error_give(error, &err);
    session = alloc_zero(1, sizeof *session);
    session->engine = engine;
    session->job = started;
    session->in_layer = sessions;
    if (sessions)
        (*sessions)++;
    session->on_change = options.on_change;
    session->data = options.data;
    session->change = loop_timer_new(engine->loop, on_time, session);
    session->reader = reader_new(
        job_output(started),
        &(struct reader_options){.unit = OUTPUT_BY_RUN, .on_ready = on_reader, .data = session});
    session->watch.on_event = on_session;
    job_watch(started, &session->watch);
    loop_timer_start(session->change, 0); /* the host reads, and is told from then on */
    *ret_session = session;
    return 0;
}

/* --- reading and writing --- */

void cordon_session_read(struct cordon_session *session, void *into, size_t max,
                         struct cordon_record *ret_record)
{
    static const enum cordon_record_kind kinds[] = {
        [OUTPUT_BYTES] = CORDON_BYTES,
        [OUTPUT_GAP] = CORDON_GAP,
        [OUTPUT_EMPTY] = CORDON_EMPTY,
        [OUTPUT_END] = CORDON_EOF,
    };
    struct output_record record;

    reader_read(session->reader, into, max, &record);
    *ret_record = (struct cordon_record){
        .kind = (int)kinds[record.kind],
        .stream = record.stream == STREAM_STDERR ? 2 : 1,
        .offset = record.offset,
        .len = record.len,
    };
}

int cordon_session_write(struct cordon_session *session, const void *bytes, size_t len,
                         struct cordon_error *error)
{
    enum job_written written;
    struct err err;

    if (job_write(session->job, bytes, len, NULL, &written, &err))
        return error_give(error, &err);
    if (written == JOB_NO_INPUT)
        err_set(&err, ERR_INVALID, "the command has no input to write to");
    else if (written == JOB_NO_ROOM)
        err_set(&err, ERR_LIMIT, "%zu bytes wait already for the command to read them",
                JOB_INPUT_MAX);
    else
        return 0;
    return error_give(error, &err);
}

void cordon_session_close_input(struct cordon_session *session)
{
    job_close_input(session->job);
}

int cordon_session_screen(struct cordon_session *session, struct cordon_screen **ret_screen,
                          struct cordon_error *error)
{
    struct err err;
    struct cordon_screen *view = view_new(job_screen(session->job), &err);

    if (!view)
        return error_give(error, &err);
    *ret_screen = view;
    return 0;
}

/* --- control --- */

int cordon_session_resize(struct cordon_session *session, unsigned short rows,
                          unsigned short columns, struct cordon_error *error)
{
    const struct pty_size size = {.rows = rows, .columns = columns};
    struct err err;

    return job_resize(session->job, size, &err) ? error_give(error, &err) : 0;
}

int cordon_session_signal(struct cordon_session *session, int signal, struct cordon_error *error)
{
    struct err err;

    return job_signal(session->job, signal, &err) ? error_give(error, &err) : 0;
}

int cordon_session_interrupt(struct cordon_session *session, struct cordon_error *error)
{
    struct err err;

    return job_interrupt(session->job, &err) ? error_give(error, &err) : 0;
}

int cordon_session_terminate(struct cordon_session *session, unsigned grace_ms,
                             struct cordon_error *error)
{
    struct err err;

    return job_terminate(session->job, grace_ms * CLOCK_NS_PER_MS, &err) ? error_give(error, &err)
                                                                         : 0;
}

/* --- the end --- */

const struct cordon_end *cordon_session_end(const struct cordon_session *session)
{
    return job_end(session->job) ? &session->end : NULL;
}

const char *cordon_session_denial(struct cordon_session *session)
{
    AUTO(denials_done) struct denials denials = {0};

    if (!job_end(session->job) || session->denial)
        return session->denial;
    job_denials(session->job, &denials);
    session->denial = denials_say(&denials);
    return session->denial;
}

const char *event_give(const struct job *job, uint64_t *after, char **text)
{
    const struct timeline *timeline = job ? job_timeline(job) : NULL;
    const struct timeline_event *event = timeline ? timeline_after(timeline, *after) : NULL;
    AUTO_JSON json_t *json = event ? timeline_event_to_json(event) : NULL;

    free(*text);
    *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    if (event)
        *after = event->seq;
    return *text;
}

const char *cordon_session_event(struct cordon_session *session, uint64_t *after)
{
    return event_give(session->job, after, &session->event);
}

int cordon_session_wait(struct cordon_session *session, int timeout_ms, struct cordon_error *error)
{
    uint64_t until_ns =
        timeout_ms < 0 ? UINT64_MAX : clock_now_ns() + (uint64_t)timeout_ms * CLOCK_NS_PER_MS;

    while (!cordon_session_end(session)) {
        uint64_t now = clock_now_ns();
        uint64_t left_ms = (until_ns - now + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS;

        if (now >= until_ns)
            return 0;
        if (cordon_wait(session->engine, timeout_ms < 0 ? -1 : (int)left_ms, error))
            return -1;
    }
    return 1;
}

/* --- the screen: a copy, which the host may keep as long as it likes --- */

struct view {
    struct cordon_screen screen; /* first, so that one is the other */
    char *title;
    char *text;
    char *scrollback;
};

const struct screen_limits *view_limits(unsigned flags)
{
    static const struct screen_limits limits = {.lines_max = 1000, .bytes_max = 1 << 18};

    return flags & CORDON_SCREEN ? &limits : NULL;
}

struct cordon_screen *view_new(const struct screen *screen, struct err *err)
{
    struct screen_info info;
    struct view *view;
    struct buf text;
    struct buf scrollback;

    if (!screen) {
        err_set(err, ERR_INVALID, "the session was started without CORDON_TTY | CORDON_SCREEN");
        return NULL;
    }
    screen_info(screen, &info);
    view = alloc_zero(1, sizeof *view);
    view->screen = (struct cordon_screen){
        .rows = info.rows,
        .columns = info.columns,
        .cursor_row = info.cursor_row,
        .cursor_column = info.cursor_column,
        .cursor_visible = info.is_cursor_visible,
        .alternate = info.is_alternate,
    };
    view->screen.title = view->title = alloc_str(info.title);
    buf_init(&text, SIZE_MAX / 2);
    for (unsigned row = 0; row < info.rows; row++) {
        screen_row(screen, row, &text);
        buf_append(&text, "\n", 1);
    }
    view->screen.text_len = text.len;
    view->screen.text = view->text = buf_take(&text);
    buf_init(&scrollback, SIZE_MAX / 2);
    for (size_t i = 0; i < info.lines; i++)
        buf_appendf(&scrollback, "%s\n", screen_line(screen, i));
    view->screen.scrollback_len = scrollback.len;
    view->screen.scrollback = view->scrollback = buf_take(&scrollback);
    return &view->screen;
}

void cordon_screen_free(struct cordon_screen *screen)
{
    struct view *view = (struct view *)screen;

    if (!view)
        return;
    free(view->title);
    free(view->text);
    free(view->scrollback);
    free(view);
}
