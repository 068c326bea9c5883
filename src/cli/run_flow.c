/* See run_flow.h. The executor decides and drives; here is what it needs of this host: whom to ask,
 * and where to say what happens. */
#include "cli/run_flow.h"

#include "approval/approvals.h"
#include "approval/approver_hook.h"
#include "approval/approver_terminal.h"
#include "approval/prompt.h"
#include "base/auto.h"
#include "cli/console.h"
#include "cli/run.h"
#include "loop/loop.h"

#define FLUSH_NS UINT64_C(1000000000) /* 1 s: quicker commands write everything at their end */

void run_flow_done(struct run_flow *flow)
{
    if (flow->execution)
        execution_free(flow->execution);
    approvals_free(flow->approvals);
    prompt_free(flow->prompt);
    loop_timer_free(flow->flush);
    loop_free(flow->loop);
    run_patch_done(&flow->patch);
    settings_done(&flow->settings);
    *flow = (struct run_flow){0};
}

/* --- attempts --- */

void run_flow_warn(struct run_flow *flow)
{
    const struct workspace *workspace = flow->settings.workspace;
    struct strv *warnings = &flow->settings.warnings;

    if (workspace->sandbox && workspace != flow->told)
        run_report_degradation(workspace->sandbox, warnings);
    flow->told = workspace;
    for (; flow->warned < warnings->len; flow->warned++)
        if (!(flow->options->flags & RUN_QUIET))
            console_say("%s", warnings->items[flow->warned]);
}

/* Once the sandbox stands, since which layers this host has is only known then. */
static void on_started(void *data)
{
    run_flow_warn(data);
}

static void on_attempt(void *data, enum run_where where, struct workspace *workspace)
{
    struct run_flow *flow = data;

    flow->settings.workspace = workspace;
    if (where == RUN_UNCONFINED)
        strv_push(&flow->settings.warnings, "no sandbox: a rule or an answer allows that");
    else
        run_report_no_sandbox(&flow->settings, &flow->settings.warnings);
}

/* --- what happens --- */

static void on_event(void *data, const struct execution_event *event)
{
    struct run_flow *flow = data;

    if (event->kind == EXECUTION_RETRIED && !(flow->options->flags & RUN_QUIET))
        console_say("once more, with %s", event->words);
    run_audit_event(flow->audit, &flow->settings, event);
}

static void on_flush(void *data)
{
    run_audit_flush(((struct run_flow *)data)->audit);
}

static void on_done(void *data)
{
    ((struct run_flow *)data)->is_done = true;
}

/* --- who is asked --- */

static int add_approvers(struct run_flow *flow, struct err *err)
{
    const struct run_options *options = flow->options;
    uint64_t deadline =
        options->approval_timeout_ns ? options->approval_timeout_ns : APPROVER_HOOK_DEADLINE_NS;
    struct err ignored; /* without a terminal there is just one less to ask */
    struct approver *approver;

    if (options->approval_hook) {
        approver = approver_hook_new(flow->loop, options->approval_hook, deadline, err);
        if (!approver)
            return err_wrap(err, "--approval-hook");
        approvals_add_approver(flow->approvals, approver);
    }
    flow->prompt = prompt_open(flow->loop, &ignored);
    if (flow->prompt)
        approvals_add_approver(flow->approvals, approver_terminal_new(flow->prompt, NULL));
    return 0;
}

static void fill_options(struct run_flow *flow, char **argv)
{
    struct execution_options *options = &flow->execution_options;

    settings_execution(&flow->settings, argv, options);
    options->loop = flow->loop;
    options->approvals = flow->approvals;
    options->job = &flow->job;
    options->on_attempt = on_attempt;
    options->on_event = on_event;
    options->on_done = on_done;
    options->data = flow;
    flow->job.on_started = on_started;
    flow->job.data = flow;
    run_patch_fill(&flow->patch, options, &flow->job);
}

int run_flow_run(struct run_flow *flow, char **argv, struct err *err)
{
    flow->loop = loop_new(err);
    if (!flow->loop)
        return -1;
    if (flow->settings.approval_from) {
        flow->approvals = approvals_new(flow->loop, flow->options->approval_timeout_ns);
        if (add_approvers(flow, err))
            return -1;
    }
    fill_options(flow, argv);
    flow->execution = execution_start(&flow->execution_options);
    strv_push_all(&flow->settings.warnings,
                  strv_view(&execution_result(flow->execution)->problems));
    flow->flush = loop_timer_new(flow->loop, on_flush, flow);
    loop_timer_start(flow->flush, FLUSH_NS);
    return loop_run(flow->loop, &flow->is_done, err);
}
