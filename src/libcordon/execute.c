/* One command to its end: cordon_run(), whose result is one block of plain values, and
 * cordon_execute(), the executor (execution.h) behind the library's face. What the host says of the
 * call is copied into one struct that lives as long as the command. */
#include "libcordon/engine.h"

#include "approval/grant.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/list.h"
#include "base/utf8.h"
#include "executor/execution.h"
#include "job/job_run.h"
#include "job/result_json.h"
#include "output/output.h"
#include "policy/profile.h"
#include "policy/profile_json.h"
#include "workspace/workspace.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)CORDON_EXECUTION_FAILED == (int)EXECUTION_FAILED, "the outcomes are the same");
_Static_assert((int)CORDON_PLACE_NONE == (int)RUN_UNCONFINED, "the places are the same");
_Static_assert((int)CORDON_ASKS_RULES == (int)APPROVAL_QUESTION_RULES, "the questions, too");

/* --- cordon_run() --- */

/* The result that the host sees, and what it points to. */
struct run_result {
    struct cordon_result shown; /* first, so that one is the other */
    struct cordon_end end;
    char *output[STREAM_COUNT];
    char *denial;
    char *events;
    struct strv published;
};

void cordon_result_free(struct cordon_result *result)
{
    struct run_result *whole = (struct run_result *)result;

    if (!whole)
        return;
    for (int i = 0; i < STREAM_COUNT; i++)
        free(whole->output[i]);
    free(whole->denial);
    free(whole->events);
    strv_done(&whole->published);
    free(whole);
}

static void fill_output(struct run_result *result, struct output *output, enum stream stream)
{
    AUTO(buf_done) struct buf bytes;
    struct buf text;

    buf_init(&bytes, SIZE_MAX / 2);
    buf_init(&text, SIZE_MAX / 2);
    output_render(output, &bytes);
    utf8_append_lossy(&text, bytes.data ? bytes.data : "", bytes.len);
    result->shown.output_len[stream] = text.len;
    result->shown.output[stream] = result->output[stream] = buf_take(&text);
}

static struct cordon_result *result_make(const struct job_result *from)
{
    struct run_result *result = alloc_zero(1, sizeof *result);
    struct resource_limits_report limits;

    result->shown.outcome = from->end == JOB_RUN_TIMED_OUT ? CORDON_RUN_TIMED_OUT
                            : from->end == JOB_RUN_DENIED  ? CORDON_RUN_DENIED
                                                           : CORDON_RUN_ENDED;
    end_fill(&result->end, from->process,
             job_result_has_failed(from) ? job_result_exit_code(from)
                                         : process_end_exit_code(from->process));
    job_limits(from->job, &limits);
    result->end.limits_hit = limits_hit(&limits);
    result->shown.end = &result->end;
    for (int i = 0; i < STREAM_COUNT; i++)
        fill_output(result, job_stream(from->job, (enum stream)i), (enum stream)i);
    result->shown.denial = result->denial = denials_say(&from->denials);
    result->shown.events = result->events = events_to_text(from->job);
    publications_format(job_publications(from->job), &result->published);
    result->shown.published = (const char *const *)strv_view(&result->published);
    return &result->shown;
}

static int run(struct cordon_engine *engine, const struct cordon_run_options *given,
               struct cordon_result **ret, struct err *err)
{
    struct cordon_run_options options;
    struct workspace *workspace;
    AUTO_FREE char *cwd = NULL;
    struct job_result result;
    struct job_run_options job;

    if (options_read(&options, sizeof options, given, err))
        return -1;
    workspace = policy_workspace(engine, options.policy, err);
    if (!workspace)
        return -1;
    job_run_defaults(&job);
    job.loop = engine->loop;
    job.sandbox = workspace->sandbox;
    job.access = workspace->access;
    job.topics = workspace->topics;
    job.argv = (char *const *)options.argv;
    job.env = options.env ? (char *const *)options.env : strv_view(&workspace->env);
    job.cwd = cwd = workspace_dir(workspace, options.cwd);
    job.timeout_ns = ms_to_ns(options.timeout_ms);
    if (limits_read(&job.limits, options.limits, err))
        return -1;
    if (options.max_output)
        job.max_output = options.max_output;
    if (options.input) {
        job.input = JOB_RUN_INPUT_DATA;
        job.input_data = options.input;
        job.input_len = options.input_len;
    }
    if (job_run(&job, &result, err))
        return -1;
    *ret = result_make(&result);
    job_result_done(&result);
    return 0;
}

int cordon_run(struct cordon_engine *engine, const struct cordon_run_options *options,
               struct cordon_result **ret_result, struct cordon_error *error)
{
    struct err err;

    return run(engine, options, ret_result, &err) ? error_give(error, &err) : 0;
}

/* --- cordon_execute(): life --- */

struct cordon_execution {
    struct cordon_engine *engine;
    struct list link;
    cordon_done_fn *on_done;
    void *data;
    void (*on_output)(void *data, int stream, const char *bytes, size_t len);

    struct strv argv;
    struct strv env; /* of the call */
    struct strv prefix;
    struct profile_overlay additional;
    char *cwd;
    char *justification;
    char *input;
    struct workspace *workspace;
    struct job_run_options job;
    struct execution_options options;
    struct execution *execution;
};

static void self_free(struct cordon_execution *self)
{
    list_remove(&self->link);
    if (self->execution)
        execution_free(self->execution);
    strv_done(&self->argv);
    strv_done(&self->env);
    strv_done(&self->prefix);
    profile_overlay_done(&self->additional);
    free(self->justification);
    free(self->input);
    free(self->cwd);
    free(self);
}

void executions_free(struct cordon_engine *engine)
{
    while (!list_is_empty(&engine->executions))
        self_free(list_first(&engine->executions, struct cordon_execution, link));
}

bool executions_use_layer(const struct cordon_engine *engine, const struct layer *layer)
{
    const struct cordon_execution *execution;

    list_for_each(execution, &engine->executions, link)
        if (execution->workspace && execution->workspace->layer == layer)
            return true;
    return false;
}

void cordon_execution_cancel(struct cordon_execution *execution)
{
    execution_cancel(execution->execution);
}

static void on_output(void *data, enum stream stream, const char *bytes, size_t len,
                      uint64_t offset)
{
    struct cordon_execution *self = data;

    if (self->on_output)
        self->on_output(self->data, stream == STREAM_STDERR ? 2 : 1, bytes, len);
}

/* --- the end --- */

static void on_done(void *data)
{
    struct cordon_execution *self = data;
    const struct execution_result *from = execution_result(self->execution);
    AUTO_JSON json_t *json = execution_to_json(from, NULL);
    AUTO_FREE char *text = json_dumps(json, JSON_COMPACT);
    AUTO(strv_done) struct strv warnings = {0};
    struct cordon_attempt attempts[EXECUTION_ATTEMPTS_MAX];
    struct cordon_execution_result result = {
        .outcome = (int)from->outcome,
        .decision = (int)from->decision,
        .reason = from->reason,
        .json = text,
    };

    for (size_t i = 0; i < from->attempts_len; i++) {
        attempts[i] = (struct cordon_attempt){.place = (int)from->attempts[i].where,
                                              .widened = from->attempts[i].widened,
                                              .result = result_make(&from->attempts[i].result)};
        result.attempts[i] = &attempts[i];
    }
    strv_push_all(&warnings, strv_view(&from->problems));
    strv_push_all(&warnings, strv_view(&from->warnings));
    result.warnings = (const char *const *)strv_view(&warnings);
    if (self->on_done)
        self->on_done(self->data, &result);
    for (size_t i = 0; i < from->attempts_len; i++)
        cordon_result_free((struct cordon_result *)attempts[i].result);
    self_free(self);
}

/* --- the call --- */

static int read_approval(const struct cordon_engine *engine,
                         const struct cordon_execute_options *options, struct approval_policy *ret,
                         struct err *err)
{
    static const enum approval_mode modes[] = {
        [CORDON_APPROVAL_ON_REQUEST] = APPROVAL_ON_REQUEST,
        [CORDON_APPROVAL_UNTRUSTED] = APPROVAL_UNTRUSTED,
        [CORDON_APPROVAL_GRANULAR] = APPROVAL_GRANULAR,
        [CORDON_APPROVAL_NEVER] = APPROVAL_NEVER,
    };
    const struct approval_policy *own = config_approval_policy(engine->config);

    if (options->approval < 0 || options->approval > CORDON_APPROVAL_NEVER)
        return err_set(err, ERR_INVALID, "approval is %d, which is no enum cordon_approval",
                       options->approval);
    if (options->approval == CORDON_APPROVAL_DEFAULT)
        *ret = own ? *own : (struct approval_policy){.mode = APPROVAL_ON_REQUEST};
    else
        *ret =
            (struct approval_policy){.mode = modes[options->approval], .questions = options->asks};
    ret->yes_means_unsandboxed =
        options->yes_means_unsandboxed || config_yes_means_unsandboxed(engine->config);
    return 0;
}

static int read_job(struct cordon_execution *self, const struct cordon_execute_options *options,
                    struct err *err)
{
    struct job_run_options *job = &self->job;

    job_run_defaults(job);
    job->timeout_ns = ms_to_ns(options->timeout_ms);
    if (options->kill_after_ms)
        job->kill_after_ns = ms_to_ns(options->kill_after_ms);
    job->on_output = on_output;
    job->data = self;
    if (options->max_output)
        job->max_output = options->max_output;
    if (options->input) {
        self->input = alloc_zero(options->input_len + 1, 1);
        memcpy(self->input, options->input, options->input_len);
        job->input = JOB_RUN_INPUT_DATA;
        job->input_data = self->input;
        job->input_len = options->input_len;
    }
    return limits_read(&job->limits, options->limits, err);
}

static int read_additional(struct cordon_execution *self, const char *text, struct err *err)
{
    AUTO_JSON json_t *json = text ? json_parse(text, strlen(text), err) : NULL;

    if (!text)
        return 0;
    if (!json || profile_overlay_from_json(json, &self->additional, err) ||
        profile_overlay_normalise(&self->additional, err) ||
        overlay_settle(&self->additional, strv_view(&self->workspace->own_paths), err))
        return err_wrap(err, "additional");
    return 0;
}

static int read_call(struct cordon_execution *self, const struct cordon_execute_options *options,
                     struct err *err)
{
    struct cordon_engine *engine = self->engine;

    self->workspace = policy_workspace(engine, options->policy, err);
    if (!self->workspace || read_approval(engine, options, &self->options.policy, err) ||
        read_job(self, options, err) || read_additional(self, options->additional, err))
        return -1;
    if (!options->argv || !options->argv[0])
        return err_set(err, ERR_INVALID, "argv is empty: it begins with a program");
    strv_push_all(&self->argv, (char *const *)options->argv);
    strv_push_all(&self->env, (char *const *)options->env);
    strv_push_all(&self->prefix, (char *const *)options->prefix);
    self->cwd = workspace_dir(self->workspace, options->cwd);
    self->justification = alloc_str(options->justification);
    self->on_output = options->on_output;
    self->options = (struct execution_options){
        .loop = engine->loop,
        .workspace = self->workspace,
        .rules = {.config = engine->config, .dir = engine->rules, .home = engine->home},
        .gate = EXECUTION_ASKS,
        .policy = self->options.policy,
        .approvals = engine->approvals,
        .argv = strv_view(&self->argv),
        .env = self->env.len ? strv_view(&self->env) : NULL,
        .own_env = environ,
        .snapshots = self->env.len ? NULL : engine->snapshots,
        .cwd = self->cwd,
        .justification = self->justification,
        .permissions = options->escalated    ? SANDBOX_ESCALATED
                       : options->additional ? SANDBOX_WITH_ADDITIONAL
                                             : SANDBOX_USE_DEFAULT,
        .additional = &self->additional,
        .proposed = self->prefix.len ? strv_view(&self->prefix) : NULL,
        .job = &self->job,
        .on_done = on_done,
        .data = self,
    };
    return 0;
}

int cordon_execute(struct cordon_engine *engine, const struct cordon_execute_options *given,
                   cordon_done_fn *on_done_fn, void *data, struct cordon_execution **ret_execution,
                   struct cordon_error *error)
{
    struct cordon_execute_options options;
    struct cordon_execution *self;
    struct err err;

    if (options_read(&options, sizeof options, given, &err))
        return error_give(error, &err);
    self = alloc_zero(1, sizeof *self);
    self->engine = engine;
    list_add(&engine->executions, &self->link);
    self->on_done = on_done_fn;
    self->data = data;
    if (read_call(self, &options, &err)) {
        self_free(self);
        return error_give(error, &err);
    }
    self->execution = execution_start(&self->options);
    if (ret_execution)
        *ret_execution = self;
    return 0;
}
