/* cordon_run(): one command to its end, and its result as one block of plain values. */
#include "libcordon/engine.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "job/job_run.h"
#include "output/output.h"
#include "workspace/workspace.h"

#include <stdint.h>
#include <stdlib.h>

/* The result that the host sees, and what it points to. */
struct run_result {
    struct cordon_result shown; /* first, so that one is the other */
    struct cordon_end end;
    char *output[STREAM_COUNT];
    char *denial;
};

void cordon_result_free(struct cordon_result *result)
{
    struct run_result *whole = (struct run_result *)result;

    if (!whole)
        return;
    for (int i = 0; i < STREAM_COUNT; i++)
        free(whole->output[i]);
    free(whole->denial);
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

static void fill_end(struct cordon_end *end, const struct job_result *from)
{
    struct resource_limits_report limits;
    bool has_failed = job_result_has_failed(from);

    end_fill(end, from->process,
             has_failed ? job_result_exit_code(from) : process_end_exit_code(from->process));
    job_resource_limits(from->job, &limits);
    end->limits_hit = limits_hit(&limits);
}

struct cordon_result *result_make(const struct job_result *from)
{
    struct run_result *result = alloc_zero(1, sizeof *result);

    result->shown.outcome = from->end == JOB_RUN_TIMED_OUT ? CORDON_RUN_TIMED_OUT
                            : from->end == JOB_RUN_DENIED  ? CORDON_RUN_DENIED
                                                           : CORDON_RUN_ENDED;
    fill_end(&result->end, from);
    result->shown.end = &result->end;
    for (int i = 0; i < STREAM_COUNT; i++)
        fill_output(result, job_stream(from->job, (enum stream)i), (enum stream)i);
    result->shown.denial = result->denial = denials_say(&from->denials);
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
