/* See approver_hook.h. The program is run like any command, as a job run, in a sandbox object that
 * confines nothing: bounded output, a deadline, and no descriptor of ours. */
#include "approval/approver_hook.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/list.h"
#include "base/str.h"
#include "job/job_run.h"
#include "output/output.h"
#include "policy/access.h"
#include "sandbox/sandbox.h"

#include <inttypes.h>
#include <string.h>

enum { ANSWER_MAX = 64 * 1024 };

struct approver_hook {
    struct approver approver;
    struct loop *loop;
    char *program;
    struct strv env;
    uint64_t deadline_ns;
    struct access_map access;
    struct sandbox *sandbox;
    struct list runs; /* those that are asked now */
};

struct hook_run {
    struct list link;
    struct approver_hook *hook;
    const struct approval_request *question;
    struct job_run_options options;
    struct job_run *run;
    char *argv[2];
    char *input;
};

static void run_free(struct hook_run *run)
{
    list_remove(&run->link);
    job_run_free(run->run);
    free(run->input);
    free(run);
}

/* --- its answer --- */

static char *text_of(const struct job_result *result, enum stream stream)
{
    AUTO(buf_done) struct buf text = {0};

    buf_init(&text, SIZE_MAX / 2);
    output_render(job_stream(result->job, stream), &text);
    return buf_take(&text);
}

static int check_end(const struct job_result *result, struct err *err)
{
    AUTO_FREE char *said = text_of(result, STREAM_STDERR);

    if (result->end == JOB_RUN_TIMED_OUT)
        return err_set(err, ERR_LIMIT, "it did not answer within %" PRIu64 " ms",
                       result->wall_ns / 1000000);
    if (job_result_has_failed(result))
        return err_set(err, ERR_SYSTEM, "%s", result->process->failure.msg);
    if (result->process->code != 0)
        return err_set(err, ERR_INVALID, "it ended with %d%s%s", job_result_exit_code(result),
                       *said ? ": " : "", said);
    return 0;
}

/* `*ret_passes`: it left the question to others. */
static int read_answer(const struct hook_run *run, const char *text, struct approval_answer *ret,
                       bool *ret_passes, struct err *err)
{
    AUTO_JSON json_t *json = json_parse(text, strlen(text), err);
    struct json_at root = json_at_root(json);
    struct json_at decision = json_at_field(&root, "decision");
    struct json_at reason = json_at_field(&root, "reason");
    const char *said = NULL;
    const char *word;

    if (!json || json_at_string(&decision, &word, err) ||
        (json_at_is_given(&reason) && json_at_string(&reason, &said, err)))
        return -1;
    *ret_passes = str_eq(word, "ask");
    if (!*ret_passes && approval_decision_parse(word, run->question, &ret->decision, err))
        return -1;
    ret->reason = alloc_str(said);
    return 0;
}

static void on_over(void *data)
{
    struct hook_run *run = data;
    struct approvals *approvals = run->hook->approver.approvals;
    AUTO_FREE char *id = alloc_str(run->question->id);
    struct approval_answer answer = {.by = "hook"};
    struct job_result result;
    AUTO_FREE char *text = NULL;
    bool passes = false;
    struct err err;

    job_run_take(run->run, &result);
    text = text_of(&result, STREAM_STDOUT);
    if (check_end(&result, &err) || read_answer(run, text, &answer, &passes, &err)) {
        answer.decision = APPROVAL_DENIED;
        answer.reason = alloc_strf("the hook %s: %s", run->hook->program, err.msg);
    }
    job_result_done(&result);
    run_free(run);
    if (!passes) {
        approvals_answer(approvals, id, &answer, &err); /* another approver may have been faster */
        return;
    }
    approval_answer_done(&answer);
    approvals_pass(approvals, id);
}

/* --- asking --- */

static void run_init(struct hook_run *run, struct approver_hook *hook,
                     const struct approval_request *question)
{
    AUTO_JSON json_t *json = approval_request_to_json(question);
    AUTO_FREE char *line = json_dumps(json, JSON_COMPACT);

    run->hook = hook;
    run->question = question;
    run->argv[0] = hook->program;
    run->input = alloc_strf("%s\n", line);
    job_run_defaults(&run->options);
    run->options.loop = hook->loop;
    run->options.sandbox = hook->sandbox;
    run->options.argv = run->argv;
    run->options.env = strv_view(&hook->env);
    run->options.cwd = "/";
    run->options.input = JOB_RUN_INPUT_DATA;
    run->options.input_data = run->input;
    run->options.input_len = strlen(run->input);
    run->options.timeout_ns = hook->deadline_ns;
    run->options.max_output = ANSWER_MAX;
    run->options.on_over = on_over;
    run->options.data = run;
}

static void hook_ask(struct approver *approver, const struct approval_request *question)
{
    struct approver_hook *hook = (struct approver_hook *)approver;
    struct hook_run *run = alloc_zero(1, sizeof *run);
    struct approval_answer answer = {.decision = APPROVAL_DENIED, .by = "hook"};
    struct err err;
    struct err ignored;

    run_init(run, hook, question);
    list_add(&hook->runs, &run->link);
    run->run = job_run_start(&run->options, &err);
    if (run->run)
        return;
    run_free(run);
    answer.reason = alloc_strf("the hook %s: %s", hook->program, err.msg);
    approvals_answer(approver->approvals, question->id, &answer, &ignored);
}

static void hook_withdraw(struct approver *approver, const char *id)
{
    struct approver_hook *hook = (struct approver_hook *)approver;
    struct hook_run *run;

    list_for_each(run, &hook->runs, link)
        if (str_eq(run->question->id, id)) {
            run_free(run);
            return;
        }
}

static void hook_free(struct approver *approver)
{
    struct approver_hook *hook = (struct approver_hook *)approver;

    while (!list_is_empty(&hook->runs))
        run_free(list_first(&hook->runs, struct hook_run, link));
    sandbox_free(hook->sandbox);
    access_map_done(&hook->access);
    free(hook->program);
    strv_done(&hook->env);
    free(hook);
}

struct approver *approver_hook_new(struct loop *loop, const char *program, char *const *env,
                                   uint64_t deadline_ns, struct err *err)
{
    struct approver_hook *hook = alloc_zero(1, sizeof *hook);
    const struct sandbox_options options = {.mode = SANDBOX_DISABLED, .access = &hook->access};

    *hook = (struct approver_hook){
        .approver = {.ask = hook_ask, .withdraw = hook_withdraw, .free = hook_free},
        .loop = loop,
        .program = alloc_str(program),
        .deadline_ns = deadline_ns,
        .access = {.network = NETWORK_ENABLED},
    };
    strv_push_all(&hook->env, env);
    hook->sandbox = sandbox_new(&options, err);
    if (hook->sandbox)
        return &hook->approver;
    hook_free(&hook->approver);
    return NULL;
}
