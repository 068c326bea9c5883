/* See job.h. A process, the output that it leaves, and what waits to be its input. The process
 * is there until its end, the rest until the job is freed:
 *
 *     job_start --> process runs --> on_end: end is kept, output finished --> job_free
 *                         |    ^
 *       job_write --> pending --(INPUT_ROOM)--> process
 *
 * Events come from the loop only, never out of a call. */
#include "job/job.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "job/publish.h"
#include "output/model_cursor.h"
#include "policy/environment.h"
#include "timeline/timeline.h"

#include <errno.h>
#include <stdlib.h>

/* --- the writes that were taken ---
 *
 * Their names, so that one that is sent twice is written once. A ring that is searched from end to
 * end: comparing 4,096 numbers takes less than the write(2) that it may save. */

#define WRITE_IDS_MAX 4096 /* kept; the oldest is forgotten first */

struct write_id {
    uint64_t hash;
    char *text;
};

/* Zeroed it is empty. */
struct write_ids {
    struct write_id *items;
    size_t len;
    size_t cap;
    size_t oldest; /* once there are WRITE_IDS_MAX */
};

/* FNV-1a, 64 bits (draft-eastlake-fnv). It only saves comparing texts. */
static uint64_t hash_text(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

static bool write_ids_has(const struct write_ids *ids, const char *id)
{
    uint64_t hash = hash_text(id);

    for (size_t i = 0; i < ids->len; i++)
        if (ids->items[i].hash == hash && str_eq(ids->items[i].text, id))
            return true;
    return false;
}

static void write_ids_add(struct write_ids *ids, const char *id)
{
    struct write_id *slot;

    if (ids->len < WRITE_IDS_MAX) {
        ids->items = alloc_grow(ids->items, ids->len, &ids->cap, sizeof *ids->items);
        slot = &ids->items[ids->len++];
    } else {
        slot = &ids->items[ids->oldest];
        ids->oldest = (ids->oldest + 1) % WRITE_IDS_MAX;
        free(slot->text);
    }
    *slot = (struct write_id){.hash = hash_text(id), .text = alloc_str(id)};
}

/* --- the job --- */

enum job_input {
    INPUT_IS_OPEN,
    INPUT_IS_CLOSING, /* behind what is pending */
    INPUT_IS_CLOSED,  /* or there never was one */
};

struct job {
    struct job_info info;    /* owns its texts; what can change is found when asked */
    struct process *process; /* NULL once it has ended */
    struct process_end end;
    bool has_end;
    bool is_in_layer;
    bool has_facts; /* what its sandbox refuses is told, in `facts` */
    struct denials facts;
    size_t told;               /* of them, by job_new_denials() */
    struct timeline *timeline; /* NULL: none */
    struct timeline *audit_timeline;
    struct denials denials; /* as they were when first asked for */
    bool has_denials;
    char *program;                   /* that was executed; names denials */
    struct strv proxies;             /* that its variables name */
    struct strv withheld;            /* variables of ours that it has not, as they are secrets */
    const struct access_map *access; /* borrowed; NULL: the sandbox refuses nothing */
    struct resource_limits_scope limits;
    struct resource_limits_report limits_report; /* complete once it has ended */
    struct output *outputs[STREAM_COUNT];        /* the same one, or one for each stream */
    size_t memory_max;                           /* of each */
    struct model_cursor *cursor;                 /* NULL with one for each */
    const struct job_tap *tap;
    void *data;
    struct job_asker *asker; /* owned; NULL: none */
    uint64_t held_since_ns;  /* 0: nobody is being asked */
    uint64_t held_ns;        /* before that */
    struct screen *screen;   /* NULL: none */
    struct buf pending;      /* input that the process had no room for */
    struct write_ids writes;
    enum job_input input;
    bool has_refused;
    bool is_terminated;               /* its end was asked for */
    struct publications publications; /* with the ports that they have got */
    struct list watches;
};

/* --- notifications --- */

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

static void on_stopped(void *data)
{
    job_notify(data, JOB_STOPPED);
}

static void on_output(void *data, enum stream stream, const char *bytes, size_t len,
                      uint64_t offset)
{
    struct job *job = data;

    output_append(job->outputs[stream], stream, bytes, len);
    for (size_t at = 0; job->screen && at < len;)
        at += screen_feed(job->screen, bytes + at, len - at);
    if (job->tap && job->tap->on_output)
        job->tap->on_output(job->data, stream, bytes, len, offset);
}

/* Passes on what waits, as far as it goes. */
static void job_feed(struct job *job)
{
    size_t taken = process_write(job->process, job->pending.data, job->pending.len);

    buf_consume(&job->pending, taken);
    if (job->pending.len)
        return;
    buf_done(&job->pending);
    buf_init(&job->pending, SIZE_MAX / 2); /* job_write() has the limit */
    if (job->input == INPUT_IS_CLOSING) {
        job->input = INPUT_IS_CLOSED;
        process_close_input(job->process);
    }
}

static void on_input(void *data, enum input_event event)
{
    struct job *job = data;

    if (job->tap && job->tap->on_input) {
        job->tap->on_input(job->data, event);
        return;
    }
    if (event == INPUT_CLOSED) {
        job->input = INPUT_IS_CLOSED;
        buf_done(&job->pending);
    } else {
        job_feed(job);
    }
    if (job->has_refused && !job->pending.len) {
        job->has_refused = false;
        job_notify(job, JOB_ROOM);
    }
}

static void tell_asker(struct job *job, const struct launch_fact *fact)
{
    if (job->asker)
        job->asker->on_fact(job->asker, fact);
}

static void tell_timelines(struct job *job, const struct launch_fact *fact)
{
    timeline_add(job->timeline, fact);
    timeline_add(job->audit_timeline, fact);
}

static void on_fact(void *data, const struct launch_fact *fact)
{
    struct job *job = data;

    if (job->access && fact->kind == FACT_DENIED)
        denials_add_fact(&job->facts, job->access, fact);
    if (fact->kind == FACT_ASKED && !job->asker)
        job_answer(job, fact->id, LAUNCH_NO);
    else if (fact->kind == FACT_ASKED || fact->kind == FACT_WITHDRAWN || fact->kind == FACT_DONE ||
             (fact->kind == FACT_DENIED && fact->connect) || fact->kind == FACT_OUTSIDE ||
             fact->kind == FACT_OUTSIDE_SIGNAL)
        tell_asker(job, fact);
    if (fact->kind != FACT_ASKED || fact->operation != FACT_EXECUTE) /* else: what comes of it */
        tell_timelines(job, fact);
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

    if (job->asker)
        job->asker->on_end(job->asker);
    job->end = *end;
    job->has_end = true;
    resource_limits_report(&job->limits, end, &job->limits_report);
    resource_limits_close(&job->limits);
    job->input = INPUT_IS_CLOSED;
    buf_done(&job->pending);
    process_free(TAKE_PTR(job->process));
    for (int i = 0; i < STREAM_COUNT; i++)
        output_finish(job->outputs[i]);
    job_notify(job, JOB_ENDED);
    timeline_free(TAKE_PTR(job->audit_timeline));
}

static const struct process_events events = {
    .on_started = on_started,
    .on_stopped = on_stopped,
    .on_output = on_output,
    .on_input = on_input,
    .on_fact = on_fact,
    .on_exit = on_exit_alone,
    .on_output_end = on_output_end,
    .on_end = on_end,
};

/* --- life --- */

static void on_traced(void *data, const struct timeline_event *event)
{
    job_notify(data, JOB_TRACED);
}

static void job_auto_free(struct job **slot)
{
    job_free(*slot);
}

static struct job *job_new(const struct job_options *options)
{
    const struct process_options *process = options->process;
    bool are_apart = options->streams == JOB_STREAMS_APART;
    struct job *job = alloc_zero(1, sizeof *job);

    job->info = (struct job_info){
        .id = options->id,
        .owner = options->owner,
        .command = alloc_str(options->command),
        .cwd = alloc_str(process->cwd),
        .has_tty = process->stdio == PROCESS_TTY,
        .started_ns = clock_now_ns(),
    };
    job->program = alloc_str(process->program ? process->program : process->argv[0]);
    environment_proxies(process->env, &job->proxies);
    if (process->env)
        environment_withheld(environ, process->env, &job->withheld);
    job->access = options->access;
    job->is_in_layer = process->sandbox && sandbox_has_view(process->sandbox);
    job->tap = options->tap;
    job->data = options->data;
    resource_limits_open(sandbox_limits(process->sandbox), options->limits, &job->limits);
    job->limits.without_cgroup = options->without_cgroup;
    job->input =
        job->info.has_tty || process->input == PROCESS_STDIN_PIPE ? INPUT_IS_OPEN : INPUT_IS_CLOSED;
    job->memory_max = options->output.memory_max;
    for (int i = 0; i < STREAM_COUNT; i++)
        job->outputs[i] = i && !are_apart ? job->outputs[0] : output_new(&options->output);
    if (!are_apart)
        job->cursor = model_cursor_new(job->outputs[0], job->memory_max);
    if (options->screen && job->info.has_tty)
        job->screen =
            screen_new(&(struct screen_options){.size = process->size, .limits = *options->screen});
    buf_init(&job->pending, SIZE_MAX / 2); /* job_write() has the limit */
    return job;
}

static struct timeline *make_timeline(struct job *job, unsigned topics)
{
    const struct timeline_options options = {.topics = topics,
                                             .start_ns = job->info.started_ns,
                                             .access = job->access,
                                             .on_event = on_traced,
                                             .data = job};

    return job->has_facts && topics ? timeline_new(&options) : NULL;
}

struct job *job_start(const struct job_options *options, struct err *err)
{
    AUTO(job_auto_free) struct job *job = job_new(options);
    struct process_options process = *options->process;

    if ((sandbox_watch(process.sandbox) & WATCH_JUDGE) && !options->is_judged) {
        err_set(err, ERR_UNSUPPORTED,
                "each program is to be judged (judge = \"every-exec\"), and nobody here does that");
        return NULL;
    }
    process.events = &events;
    process.data = job;
    if (!process.drain.quiet_ns)
        process.drain.quiet_ns = JOB_DRAIN_QUIET_NS;
    process.limiter = resource_limits_apply;
    process.limiter_data = &job->limits;
    job->process = publish_start(&process, &job->publications, err);
    if (!job->process)
        return NULL;
    job->has_facts = process_has_facts(job->process);
    job->timeline = make_timeline(job, options->topics);
    job->audit_timeline = make_timeline(job, options->audit_topics);
    return TAKE_PTR(job);
}

void job_free(struct job *job)
{
    if (!job)
        return;
    process_free(TAKE_PTR(job->process));
    if (job->asker)
        job->asker->free(job->asker);
    resource_limits_close(&job->limits);
    model_cursor_free(job->cursor);
    if (job->outputs[STREAM_STDERR] != job->outputs[STREAM_STDOUT])
        output_free(job->outputs[STREAM_STDERR]);
    output_free(job->outputs[STREAM_STDOUT]);
    screen_free(job->screen);
    buf_done(&job->pending);
    for (size_t i = 0; i < job->writes.len; i++)
        free(job->writes.items[i].text);
    free(job->writes.items);
    denials_done(&job->facts);
    denials_done(&job->denials);
    timeline_free(job->timeline);
    timeline_free(job->audit_timeline);
    free(job->program);
    strv_done(&job->proxies);
    strv_done(&job->withheld);
    free((char *)job->info.command);
    free((char *)job->info.cwd);
    free(job);
}

/* --- its ports --- */

int job_publish(struct job *job, const struct publication *publication, struct publication *ret,
                struct err *err)
{
    if (!job->process)
        return err_set(err, ERR_NOT_FOUND, "the command has ended");
    return publish_port(job->process, publication, &job->publications, ret, err);
}

const struct publications *job_publications(const struct job *job)
{
    return &job->publications;
}

/* --- input --- */

int job_write(struct job *job, const void *bytes, size_t len, const char *name,
              enum job_written *ret, struct err *err)
{
    enum job_written written = JOB_WRITTEN;
    size_t taken = 0;

    if (!job->process) {
        written = JOB_IS_OVER;
    } else if (name && write_ids_has(&job->writes, name)) {
        written = JOB_WRITTEN_BEFORE;
    } else if (!job->info.has_tty && len == 1 && *(const char *)bytes == '\003') {
        /* a command without a terminal has no other way to be given a Ctrl-C */
        if (process_interrupt(job->process, err))
            return -1;
        written = JOB_INTERRUPTED;
    } else if (job->input != INPUT_IS_OPEN) {
        written = JOB_NO_INPUT;
    } else if (job->pending.len &&
               (job->pending.len >= JOB_INPUT_MAX || len > JOB_INPUT_MAX - job->pending.len)) {
        job->has_refused = true;
        written = JOB_NO_ROOM;
    } else {
        if (!job->pending.len)
            taken = process_write(job->process, bytes, len);
        buf_append(&job->pending, (const char *)bytes + taken, len - taken);
    }
    if (name && (written == JOB_WRITTEN || written == JOB_INTERRUPTED))
        write_ids_add(&job->writes, name);
    *ret = written;
    return 0;
}

void job_end_input(struct job *job, const void *bytes, size_t len)
{
    if (job->input != INPUT_IS_OPEN)
        return;
    job->input = INPUT_IS_CLOSING;
    buf_append(&job->pending, bytes, len);
    if (job->pending.len == len) /* else what comes before is still fed */
        job_feed(job);
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

/* --- what is held --- */

void job_set_asker(struct job *job, struct job_asker *asker)
{
    struct job_asker *old = job->asker;

    if (old)
        old->free(old);
    job_set_held(job, false);
    job->asker = asker;
    if (asker)
        asker->job = job;
}

void job_refuse_exec(struct job *job, const struct launch_fact *fact, const char *why)
{
    const struct access_entry decided_by = {.origin = (char *)why, .access = ACCESS_READ};
    struct launch_fact denied = *fact;

    job_answer(job, fact->id, LAUNCH_NO);
    denied.kind = FACT_DENIED;
    denied.error = EACCES;
    denied.entry = &decided_by;
    denials_add_exec(&job->facts, &denied);
    tell_timelines(job, &denied);
}

void job_take_stdio(const struct job *job, int ret_fds[3])
{
    process_take_stdio(job->process, ret_fds);
}

void job_answer_exit(struct job *job, uint64_t id, int wait_status)
{
    if (job->process)
        process_answer_exit(job->process, id, wait_status);
    tell_timelines(
        job, &(struct launch_fact){
                 .kind = FACT_EXIT, .id = id, .number = wait_status, .time_ns = clock_now_ns()});
}

void job_answer(const struct job *job, uint64_t id, enum launch_verdict verdict)
{
    /* its end reaches it before the no, after which it could end by itself */
    if (job->process)
        process_answer(job->process, id,
                       verdict == LAUNCH_NO && job->is_terminated ? LAUNCH_STOP : verdict);
}

uint64_t job_held_ns(const struct job *job)
{
    return job->held_ns + (job->held_since_ns ? clock_now_ns() - job->held_since_ns : 0);
}

bool job_is_held(const struct job *job)
{
    return job->held_since_ns;
}

void job_set_held(struct job *job, bool is_held)
{
    if (is_held == job_is_held(job))
        return;
    job->held_ns = job_held_ns(job);
    job->held_since_ns = is_held ? clock_now_ns() : 0;
    job_notify(job, is_held ? JOB_HELD : JOB_RELEASED);
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

struct process *job_process(const struct job *job)
{
    return job->process;
}

bool job_is_running(const struct job *job)
{
    return job->process && process_is_running(job->process);
}

struct output *job_output(const struct job *job)
{
    return job->outputs[STREAM_STDOUT];
}

struct output *job_stream(const struct job *job, enum stream stream)
{
    return job->outputs[stream];
}

struct model_cursor *job_model_cursor(const struct job *job)
{
    return job->cursor;
}

const struct screen *job_screen(const struct job *job)
{
    return job->screen;
}

const struct process_end *job_end(const struct job *job)
{
    return job->has_end ? &job->end : NULL;
}

const struct resource_limits_scope *job_limits(const struct job *job,
                                               struct resource_limits_report *ret)
{
    if (ret)
        *ret = job->limits_report;
    return &job->limits;
}

/* Bytes that are looked through, or as much as memory holds: a spool may hold much more. */
#define TEXT_MIN ((uint64_t)1 << 20)

void job_new_denials(struct job *job, struct denials *ret)
{
    struct denials untold = {.len = job->facts.len - job->told};

    if (!untold.len)
        return;
    untold.items = job->facts.items + job->told;
    job->told = job->facts.len;
    denials_push_all(ret, &untold);
}

/* Looked for only on request: for the words it takes a copy of what is retained, which is not worth
 * making of a command that did its work. */
static void find_denials(const struct job *job, struct denials *ret)
{
    bool is_well = job->end.how == PROCESS_EXITED && job->end.code == 0;
    struct denial_input input = {
        .access = job->access,
        .facts = job->has_facts ? &job->facts : NULL,
        .cwd = job->info.cwd,
        .end = &job->end,
        .program = job->program,
        .proxies = &job->proxies,
        .withheld = &job->withheld,
        .is_in_layer = job->is_in_layer,
    };
    const uint64_t text_max = job->memory_max < TEXT_MIN ? TEXT_MIN : job->memory_max + 2;
    struct buf texts[STREAM_COUNT] = {{.max = SIZE_MAX / 2}, {.max = SIZE_MAX / 2}};

    for (int i = 0; job->access && !is_well && i < STREAM_COUNT; i++)
        if (!i || job->outputs[i] != job->outputs[0])
            output_append_text(job->outputs[i], text_max, texts);
    for (int i = 0; i < STREAM_COUNT; i++)
        input.texts[i] = texts[i].data;
    denials_find(&input, ret);
    for (int i = 0; i < STREAM_COUNT; i++)
        buf_done(&texts[i]);
}

const struct timeline *job_timeline(const struct job *job)
{
    return job->timeline;
}

const struct timeline *job_audit_timeline(const struct job *job)
{
    return job->audit_timeline;
}

/* Once: the access map may be gone by the next time. */
void job_denials(struct job *job, struct denials *ret)
{
    if (!job->has_denials)
        find_denials(job, &job->denials);
    job->has_denials = true;
    denials_push_all(ret, &job->denials);
}

bool job_is_alive(const struct job *job)
{
    return job->process && process_is_alive(job->process);
}

bool job_was_terminated(const struct job *job)
{
    return job->is_terminated;
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
