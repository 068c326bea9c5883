/* The calls of a model in cordon.h: their parameters read, passed to job/model_calls.h, and the
 * answers passed back. A struct cordon_call is a call there and what the host gave with it. */
#include "libcordon/engine.h"
#include "workspace/finder.h"
#include "workspace/snapshots.h"
#include "workspace/workspace.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/list.h"
#include "job/model_calls.h"
#include "output/headtail.h"

#include <stdlib.h>
#include <string.h>

struct cordon_call {
    struct list link;
    struct model_call *call;
    cordon_answer_fn *on_answer;
    void *data;
};

static struct cordon_call *call_new(struct cordon_engine *engine, cordon_answer_fn *on_answer,
                                    void *data)
{
    struct cordon_call *call = alloc_zero(1, sizeof *call);

    *call = (struct cordon_call){.on_answer = on_answer, .data = data};
    list_add(&engine->calls, &call->link);
    return call;
}

static void call_free(struct cordon_call *call)
{
    list_remove(&call->link);
    free(call);
}

void calls_free(struct cordon_engine *engine)
{
    while (!list_is_empty(&engine->calls))
        call_free(list_first(&engine->calls, struct cordon_call, link));
}

static void on_done(void *data, const struct model_call_answer *response)
{
    struct cordon_call call = *(struct cordon_call *)data;
    AUTO_FREE char *denial = denials_say(response->denials);
    struct cordon_end end;
    struct cordon_answer answer = {
        .reason = response->reason == MODEL_CALL_ENDED     ? CORDON_ENDED
                  : response->reason == MODEL_CALL_YIELDED ? CORDON_YIELDED
                                                           : CORDON_MET,
        .session_id = response->end ? 0 : response->session_id,
        .wall_ns = response->wall_ns,
        .bytes = headtail_total(response->output),
        .text = response->text,
        .text_len = response->text_len,
        .denial = denial,
        .events = response->events,
    };

    call_free(data);
    if (response->end) {
        end_fill(&end, response->end, response->exit_code);
        end.limits_hit = limits_hit(response->resource_limits_report);
        answer.end = &end;
    }
    if (call.on_answer)
        call.on_answer(call.data, &answer);
}

/* The call that was started, or the failure. */
static int call_give(struct cordon_call *call, struct model_call *started,
                     struct cordon_call **ret_call, struct cordon_error *error,
                     const struct err *err)
{
    if (!started) {
        call_free(call);
        return error_give(error, err);
    }
    call->call = started;
    if (ret_call)
        *ret_call = call;
    return 0;
}

void cordon_cancel(struct cordon_call *call)
{
    model_call_cancel(call->call);
    call_free(call);
}

/* A pace as exec wants it, and the numbers that it points to. */
struct pace {
    struct cordon_pace given;
    struct model_pace pace;
};

static int pace_read(struct pace *pace, const struct cordon_pace *given, struct err *err)
{
    static const enum model_until untils[] = {
        [CORDON_UNTIL_TIME] = MODEL_UNTIL_TIME,
        [CORDON_UNTIL_TEXT] = MODEL_UNTIL_TEXT,
        [CORDON_UNTIL_QUIET] = MODEL_UNTIL_QUIET,
        [CORDON_UNTIL_BYTES] = MODEL_UNTIL_BYTES,
    };

    *pace = (struct pace){.given = {0}};
    if (!given)
        return 0;
    if (options_read(&pace->given, sizeof pace->given, given, err))
        return err_wrap(err, "pace");
    if (pace->given.until < 0 || pace->given.until > CORDON_UNTIL_BYTES)
        return err_set(err, ERR_INVALID, "pace.until is %d, which is no enum cordon_until",
                       pace->given.until);
    pace->pace = (struct model_pace){
        .until = untils[pace->given.until],
        .text = pace->given.text,
        .text_len = pace->given.text ? strlen(pace->given.text) : 0,
        .number = pace->given.number,
        .yield_ms = pace->given.yield_time_ms ? &pace->given.yield_time_ms : NULL,
        .max_tokens = pace->given.max_output_tokens ? &pace->given.max_output_tokens : NULL,
    };
    return 0;
}

/* The words and the environment that spare the command its login start-up; false: none do. */
static bool use_login(struct cordon_engine *engine, struct workspace *workspace,
                      struct model_exec *exec, struct strv *ret_argv, struct strv *ret_env)
{
    AUTO(strv_done) struct strv argv = model_exec_argv(exec);
    struct snapshot_request request = snapshot_request_for(workspace);
    AUTO(strv_done) struct strv added = {0};
    const struct err *failure;
    bool is_used;

    request.argv = strv_view(&argv);
    request.cwd = exec->workdir;
    request.env = exec->env;
    is_used = snapshots_use(engine->snapshots, &request, ret_argv, &added, &failure);
    exec->note = failure ? SNAPSHOTS_NOTE : NULL;
    strv_push_all(ret_env, exec->env);
    strv_push_all(ret_env, strv_view(&added));
    return is_used;
}

static struct model_call *start_call(struct cordon_engine *engine, struct workspace *workspace,
                                     const struct model_exec *exec, struct cordon_call *call,
                                     struct err *err)
{
    struct model_call *started = model_calls_exec(engine->model_calls, exec, on_done, call, err);
    AUTO(strv_done) struct strv argv = model_exec_argv(exec);

    if (!started)
        return NULL;
    engine_hold(engine, workspace,
                model_calls_find(engine->model_calls, model_call_id(started), err),
                strv_view(&argv));
    if (workspace->layer)
        layers_note_call(engine, workspace, model_call_id(started));
    return started;
}

static struct model_call *exec(struct cordon_engine *engine, const struct cordon_exec *options,
                               struct cordon_call *call, struct err *err)
{
    struct workspace *workspace = policy_workspace(engine, options->policy, err);
    AUTO(strv_done) struct strv base = {0};
    AUTO(strv_done) struct strv argv = {0};
    AUTO(strv_done) struct strv env = {0};
    AUTO_FREE char *workdir = NULL;
    AUTO_FREE char *shell = NULL;
    struct model_replacement replacement = {.program = NULL};
    struct pace pace;
    struct model_exec exec = {
        .cmd = options->cmd ? options->cmd : "",
        .is_login = !options->no_login,
        .stdio = options->flags & CORDON_TTY ? PROCESS_TTY : PROCESS_PIPES,
        .input = options->flags & CORDON_STDIN_PIPE ? PROCESS_STDIN_PIPE : PROCESS_STDIN_NULL,
        .size = {.rows = options->rows, .columns = options->columns},
        .screen = view_limits(options->flags),
        .owner = options->owner,
    };

    if (!workspace || pace_read(&pace, options->pace, err) ||
        limits_read(&exec.limits, options->limits, err))
        return NULL;
    exec.access = workspace->access;
    exec.topics = workspace->topics;
    workspace_job_env(workspace, engine->thread_id, &base);
    exec.env = strv_view(&base);
    shell = options->shell ? alloc_str(options->shell) : host_shell(exec.env);
    exec.shell = shell;
    exec.workdir = workdir = workspace_dir(workspace, options->workdir);
    exec.sandbox = workspace->sandbox;
    exec.pace = pace.pace;
    if (exec.is_login && use_login(engine, workspace, &exec, &argv, &env)) {
        replacement.argv = strv_view(&argv);
        exec.env = strv_view(&env);
        exec.replacement = &replacement;
    }
    exec.asks = engine_holds(engine, workspace);
    exec.is_judged = workspace_judges_execs(workspace);
    return start_call(engine, workspace, &exec, call, err);
}

int cordon_exec_command(struct cordon_engine *engine, const struct cordon_exec *given,
                        cordon_answer_fn *on_answer, void *data, struct cordon_call **ret_call,
                        struct cordon_error *error)
{
    struct cordon_call *call;
    struct cordon_exec options;
    struct err err;

    if (options_read(&options, sizeof options, given, &err))
        return error_give(error, &err);
    call = call_new(engine, on_answer, data);
    return call_give(call, exec(engine, &options, call, &err), ret_call, error, &err);
}

static struct model_call *write_to(struct cordon_engine *engine, const struct cordon_write *options,
                                   struct cordon_call *call, struct err *err)
{
    struct model_write write = {
        .session_id = options->session_id,
        .chars = options->chars ? options->chars : "",
        .len = options->chars ? options->len : 0,
        .name = options->write_id,
        .closes = options->close,
    };
    struct pace pace;

    if (pace_read(&pace, options->pace, err))
        return NULL;
    write.pace = pace.pace;
    return model_calls_write(engine->model_calls, &write, on_done, call, err);
}

int cordon_write_stdin(struct cordon_engine *engine, const struct cordon_write *given,
                       cordon_answer_fn *on_answer, void *data, struct cordon_call **ret_call,
                       struct cordon_error *error)
{
    struct cordon_call *call;
    struct cordon_write options;
    struct err err;

    if (options_read(&options, sizeof options, given, &err))
        return error_give(error, &err);
    call = call_new(engine, on_answer, data);
    return call_give(call, write_to(engine, &options, call, &err), ret_call, error, &err);
}

int cordon_wait_for(struct cordon_engine *engine, int session_id, const struct cordon_pace *given,
                    cordon_answer_fn *on_answer, void *data, struct cordon_call **ret_call,
                    struct cordon_error *error)
{
    struct cordon_call *call;
    struct pace pace;
    struct err err;

    if (pace_read(&pace, given, &err))
        return error_give(error, &err);
    call = call_new(engine, on_answer, data);
    return call_give(
        call, model_calls_wait(engine->model_calls, session_id, &pace.pace, on_done, call, &err),
        ret_call, error, &err);
}

int cordon_terminate(struct cordon_engine *engine, int session_id, unsigned grace_ms,
                     cordon_answer_fn *on_answer, void *data, struct cordon_call **ret_call,
                     struct cordon_error *error)
{
    struct cordon_call *call = call_new(engine, on_answer, data);
    struct err err;

    return call_give(call,
                     model_calls_terminate(engine->model_calls, session_id,
                                           grace_ms * CLOCK_NS_PER_MS, on_done, call, &err),
                     ret_call, error, &err);
}

size_t cordon_terminate_all(struct cordon_engine *engine, uint64_t owner, unsigned grace_ms)
{
    return model_calls_terminate_all(engine->model_calls, owner, grace_ms * CLOCK_NS_PER_MS);
}

int cordon_resize(struct cordon_engine *engine, int session_id, unsigned short rows,
                  unsigned short columns, struct cordon_error *error)
{
    const struct pty_size size = {.rows = rows, .columns = columns};
    struct err err;

    return model_calls_resize(engine->model_calls, session_id, size, &err) ? error_give(error, &err)
                                                                           : 0;
}

int cordon_screen_of(struct cordon_engine *engine, int session_id,
                     struct cordon_screen **ret_screen, struct cordon_error *error)
{
    struct err err;
    const struct job *job = model_calls_find(engine->model_calls, session_id, &err);
    struct cordon_screen *view = job ? view_new(job_screen(job), &err) : NULL;

    if (!view)
        return error_give(error, &err);
    *ret_screen = view;
    return 0;
}

const char *cordon_event_of(struct cordon_engine *engine, int session_id, uint64_t *after)
{
    struct err ignored; /* it does not run */
    const struct job *job = model_calls_find(engine->model_calls, session_id, &ignored);

    return event_give(job, after, &engine->event);
}

size_t cordon_list(struct cordon_engine *engine, uint64_t owner, int *ret_ids, size_t max)
{
    size_t len;
    AUTO_FREE int *ids = model_calls_list(engine->model_calls, owner, &len);

    for (size_t i = 0; i < len && i < max; i++)
        ret_ids[i] = ids[i];
    return len;
}
