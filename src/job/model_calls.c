/* See model_calls.h. Every function looks a job up by its id and starts a call on it; what a call
 * does until it is answered is in model_call.c.
 *
 * A job belongs to its calls and the table together: it is freed when neither has it. Its id is
 * reserved before anything is started and given back on every way on which no job comes of it.
 *
 * It does not choose a sandbox or an environment, and asks for no approval. */
#include "job/model_calls.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/strv.h"
#include "job/model_call.h"
#include "output/match.h"
#include "output/model_cursor.h"
#include "rules/shell/shell_choice.h"

#include <stdlib.h>
#include <string.h>

/* --- life --- */

static bool is_busy(void *data, void *job)
{
    return model_calls_has_call(data, job);
}

struct model_calls *model_calls_new(const struct model_calls_options *options, struct err *err)
{
    struct model_calls *calls = alloc_zero(1, sizeof *calls);
    const struct job_table_options table = {
        .capacity = options->capacity, .ids = options->ids, .is_busy = is_busy, .data = calls};

    calls->options = *options;
    if (!calls->options.capacity)
        calls->options.capacity = JOB_TABLE_CAPACITY_DEFAULT;
    if (!calls->options.output_memory)
        calls->options.output_memory = OUTPUT_MEMORY_DEFAULT;
    if (!calls->options.policy.limit)
        calls->options.policy.limit = UINT64_MAX;
    calls->table = job_table_new(&table, err);
    if (!calls->table) {
        free(calls);
        return NULL;
    }
    return calls;
}

/* Kills all before it waits for the first. */
void model_calls_free(struct model_calls *calls)
{
    size_t len;
    AUTO_FREE int *ids = NULL;

    if (!calls)
        return;
    model_calls_terminate_all(calls, 0, 0);
    while (!list_is_empty(&calls->waiting))
        call_free(list_first(&calls->waiting, struct model_call, in_waiting));
    ids = job_table_list(calls->table, 0, &len);
    for (size_t i = 0; i < len; i++)
        job_free(job_table_remove(calls->table, ids[i],
                                  (struct job_outcome){.fate = JOB_FATE_TERMINATED}));
    job_table_free(calls->table);
    free(calls);
}

/* --- finding --- */

static void fail_gone(int id, const struct job_outcome *end, struct err *err)
{
    static const char *const whys[] = {
        [JOB_FATE_FAILED] = "it failed to start",
        [JOB_FATE_TERMINATED] = "it was terminated",
        [JOB_FATE_PRUNED] = "it was killed to make room for newer ones",
    };

    if (end->fate == JOB_FATE_EXITED)
        err_set(err, ERR_NOT_FOUND, "session %d has ended: it exited with code %d", id,
                end->number);
    else if (end->fate == JOB_FATE_SIGNALED)
        err_set(err, ERR_NOT_FOUND, "session %d has ended: signal %d ended it", id, end->number);
    else
        err_set(err, ERR_NOT_FOUND, "session %d has ended: %s", id, whys[end->fate]);
}

struct job *model_calls_find(struct model_calls *calls, int id, struct err *err)
{
    struct job *job = job_table_find(calls->table, id);
    struct job_table_tombstone tombstone;
    const struct model_call *call;

    if (job)
        return job;
    list_for_each(call, &calls->waiting, in_waiting)
        if (call->id == id && !call_is_stored(call))
            return call->job;
    if (job_table_tombstone(calls->table, id, &tombstone))
        fail_gone(id, &tombstone.end, err);
    else
        err_set(err, ERR_NOT_FOUND, "there is no session %d", id);
    return NULL;
}

bool model_calls_tombstone(const struct model_calls *calls, int id, struct job_table_tombstone *ret)
{
    return job_table_tombstone(calls->table, id, ret);
}

/* --- calls --- */

static int pace_check(const struct model_pace *pace, struct err *err)
{
    struct match *match;

    if (pace->until != MODEL_UNTIL_TEXT)
        return 0;
    match = match_new(pace->text, pace->text_len, err);
    match_free(match);
    return match ? 0 : -1;
}

struct strv model_exec_argv(const struct model_exec *exec)
{
    struct strv argv = {0};

    shell_argv_make(exec->shell, exec->is_login ? SHELL_LOGIN : SHELL_PLAIN, exec->cmd, &argv);
    return argv;
}

static struct job *exec_start(struct model_calls *calls, const struct model_exec *exec, int id,
                              struct err *err)
{
    const struct spool_options spool = {.quota = calls->options.spool_quota};
    const struct model_replacement *replacement = exec->replacement;
    AUTO(strv_done) struct strv argv = model_exec_argv(exec);
    const struct process_options process = {
        .loop = calls->options.loop,
        .sandbox = exec->sandbox,
        .argv = replacement ? replacement->argv : strv_view(&argv),
        .program = replacement ? replacement->program : NULL,
        .env = exec->env,
        .cwd = exec->workdir,
        .stdio = exec->stdio,
        .input = exec->input,
        .asks = exec->asks,
        .size = exec->size,
    };

    return job_start(
        &(struct job_options){
            .id = id,
            .owner = exec->owner,
            .command = exec->cmd,
            .process = &process,
            .limits = &exec->limits,
            .access = exec->access,
            .topics = exec->topics,
            .audit_topics = exec->audit_topics,
            .is_judged = exec->is_judged,
            .screen = exec->screen,
            .output = {.memory_max = calls->options.output_memory,
                       .spool = spool.quota ? &spool : NULL},
        },
        err);
}

/* Before the loop comes round, so nobody else writes in front of it. A command that does not read it
 * all has ended, which the call tells. */
static void exec_feed(struct job *job, const struct model_exec *exec)
{
    const struct model_replacement *replacement = exec->replacement;

    if (replacement && replacement->input)
        job_end_input(job, replacement->input, replacement->input_len);
    else if (exec->given)
        job_end_input(job, exec->given, exec->given_len);
}

struct model_call *model_calls_exec(struct model_calls *calls, const struct model_exec *exec,
                                    model_call_done_fn *on_done, void *data, struct err *err)
{
    struct job *job;
    int id;

    if (!*exec->cmd) {
        err_set(err, ERR_INVALID, "cmd is empty");
        return NULL;
    }
    if (pace_check(&exec->pace, err) || job_table_reserve(calls->table, &id, err))
        return NULL;
    job = exec_start(calls, exec, id, err);
    if (!job) {
        job_table_release(calls->table, id);
        return NULL;
    }
    exec_feed(job, exec);
    return call_new(calls, &(struct call_options){.kind = MODEL_CALL_EXEC,
                                                  .job = job,
                                                  .id = id,
                                                  .pace = &exec->pace,
                                                  .yield = YIELD_EXEC,
                                                  .note = exec->note,
                                                  .on_done = on_done,
                                                  .data = data});
}

/* What a write that was not done means for the call; 0 when the call goes on, with a note. */
static int check_written(enum job_written written, int id, const char **ret_note, struct err *err)
{
    switch (written) {
    case JOB_WRITTEN:
    case JOB_INTERRUPTED:
    case JOB_IS_OVER: /* its last output and its end are the answer */
        return 0;
    case JOB_WRITTEN_BEFORE:
        *ret_note = "a write with this id was done before; nothing was written now";
        return 0;
    case JOB_NO_INPUT:
        return err_set(err, ERR_INVALID,
                       "session %d takes no input: its stdin is closed. Run the command again "
                       "with tty=true to be able to write to it",
                       id);
    case JOB_NO_ROOM:
        return err_set(err, ERR_LIMIT,
                       "session %d does not read its input: %zu bytes wait already, and nothing "
                       "more was taken",
                       id, JOB_INPUT_MAX);
    }
    return 0;
}

static int do_write(struct job *job, const struct model_write *write, const char **ret_note,
                    struct err *err)
{
    enum job_written written;

    if (write->len && (job_write(job, write->chars, write->len, write->name, &written, err) ||
                       check_written(written, write->session_id, ret_note, err)))
        return -1;
    if (write->closes)
        job_close_input(job);
    return 0;
}

struct model_call *model_calls_write(struct model_calls *calls, const struct model_write *write,
                                     model_call_done_fn *on_done, void *data, struct err *err)
{
    struct job *job = model_calls_find(calls, write->session_id, err);
    const char *note = NULL;
    uint64_t offset;

    if (!job || pace_check(&write->pace, err))
        return NULL;
    job_table_touch(calls->table, write->session_id, clock_now_ns());
    offset = output_total(job_output(job));
    if (!write->len && !write->closes)
        offset -= model_cursor_len(job_model_cursor(job));
    if (do_write(job, write, &note, err))
        return NULL;
    return call_new(calls, &(struct call_options){
                               .kind = MODEL_CALL_WRITE,
                               .job = job,
                               .id = write->session_id,
                               .pace = &write->pace,
                               .yield = write->len || write->closes ? YIELD_WRITE : YIELD_POLL,
                               .offset = offset,
                               .note = note,
                               .on_done = on_done,
                               .data = data,
                           });
}

struct model_call *model_calls_wait(struct model_calls *calls, int session_id,
                                    const struct model_pace *pace, model_call_done_fn *on_done,
                                    void *data, struct err *err)
{
    struct job *job = model_calls_find(calls, session_id, err);

    if (!job || pace_check(pace, err))
        return NULL;
    job_table_touch(calls->table, session_id, clock_now_ns());
    return call_new(calls, &(struct call_options){
                               .kind = MODEL_CALL_WAIT,
                               .job = job,
                               .id = session_id,
                               .pace = pace,
                               .yield = YIELD_POLL,
                               .offset = output_total(job_output(job)) -
                                         model_cursor_len(job_model_cursor(job)),
                               .on_done = on_done,
                               .data = data,
                           });
}

struct model_call *model_calls_terminate(struct model_calls *calls, int session_id,
                                         uint64_t grace_ns, model_call_done_fn *on_done, void *data,
                                         struct err *err)
{
    static const struct model_pace nothing;
    struct job *job = model_calls_find(calls, session_id, err);

    if (!job || job_terminate(job, grace_ns, err))
        return NULL;
    return call_new(calls, &(struct call_options){.kind = MODEL_CALL_TERMINATE,
                                                  .job = job,
                                                  .id = session_id,
                                                  .pace = &nothing,
                                                  .yield = YIELD_POLL,
                                                  .on_done = on_done,
                                                  .data = data});
}

void model_call_cancel(struct model_call *call)
{
    if (call->kind == MODEL_CALL_EXEC && !call_is_stored(call))
        call_store(call);
    call_free(call);
}

/* --- without waiting --- */

static int compare_ids(const void *left, const void *right)
{
    int a = *(const int *)left;
    int b = *(const int *)right;

    return (a > b) - (a < b);
}

int *model_calls_list(const struct model_calls *calls, uint64_t owner, size_t *ret_len)
{
    size_t stored;
    size_t len = 0;
    size_t cap;
    const struct model_call *call;
    int *ids = job_table_list(calls->table, owner, &stored);

    cap = stored;
    for (size_t i = 0; i < stored; i++)
        if (job_is_alive(job_table_find(calls->table, ids[i])))
            ids[len++] = ids[i];
    list_for_each(call, &calls->waiting, in_waiting) {
        struct job_info info;

        job_info(call->job, &info);
        if (call->kind != MODEL_CALL_EXEC || call_is_stored(call) ||
            (owner && info.owner != owner) || !job_is_alive(call->job))
            continue;
        ids = alloc_grow(ids, len, &cap, sizeof *ids);
        ids[len++] = call->id;
    }
    qsort(ids, len, sizeof *ids, compare_ids);
    *ret_len = len;
    return ids;
}

size_t model_calls_terminate_all(struct model_calls *calls, uint64_t owner, uint64_t grace_ns)
{
    size_t len;
    AUTO_FREE int *ids = model_calls_list(calls, owner, &len);
    struct err ignored; /* then the harder way */

    for (size_t i = 0; i < len; i++) {
        struct job *job = model_calls_find(calls, ids[i], &ignored);

        if (job_terminate(job, grace_ns, &ignored))
            job_terminate(job, 0, &ignored);
    }
    return len;
}

int model_calls_resize(struct model_calls *calls, int session_id, struct pty_size size,
                       struct err *err)
{
    struct job *job = model_calls_find(calls, session_id, err);

    return job ? job_resize(job, size, err) : -1;
}

const char *model_calls_shell(char *const *env)
{
    for (; env && *env; env++)
        if (str_starts(*env, "SHELL=/"))
            return *env + strlen("SHELL=");
    return "/bin/sh";
}
