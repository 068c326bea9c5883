/* See run_flow.h. The engine decides and drives; here is what it needs of this host: rules from the
 * disk, whom to ask, and a sandbox for each attempt. Settings are made anew for a second attempt,
 * from the same options, with what was agreed to laid over the profile. */
#include "cli/run_flow.h"

#include "approval/approvals.h"
#include "approval/approver_hook.h"
#include "approval/approver_terminal.h"
#include "approval/prompt.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "cli/console.h"
#include "cli/run.h"
#include "loop/loop.h"
#include "policy/profile.h"
#include "rules/rules.h"
#include "rules/rules_disk.h"

#include <string.h>

#define FLUSH_NS UINT64_C(1000000000) /* 1 s: quicker commands write everything at their end */

void run_flow_done(struct run_flow *flow)
{
    if (flow->execution)
        execution_free(flow->execution);
    approvals_free(flow->approvals);
    prompt_free(flow->prompt);
    loop_timer_free(flow->flush);
    loop_free(flow->loop);
    rules_free(flow->rules);
    free((char *)flow->execution_options.rules_file);
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

static int prepare(void *data, const struct execution_place *place, struct execution_stage *ret,
                   struct err *err)
{
    static char *const no_env[] = {NULL};
    struct run_flow *flow = data;
    bool is_bare = place->place == REQUIREMENT_UNCONFINED;
    struct workspace *workspace = flow->first;

    if (is_bare || place->widened)
        workspace = workspace_derive(flow->first, is_bare ? NULL : place->widened, err);
    if (!workspace)
        return -1;
    flow->settings.workspace = workspace;
    if (is_bare)
        strv_push(&flow->settings.warnings, "no sandbox: a rule or an answer allows that");
    else
        run_report_no_sandbox(&flow->settings, &flow->settings.warnings);
    if (workspace_open(workspace, err))
        return -1;
    *ret = (struct execution_stage){
        .sandbox = workspace->sandbox,
        .access = workspace->access,
        .env = run_patch_is_one(&flow->patch) ? no_env : strv_view(&workspace->env),
    };
    return 0;
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

static int add_askers(struct run_flow *flow, struct err *err)
{
    const struct run_options *options = flow->options;
    uint64_t deadline =
        options->approval_timeout_ns ? options->approval_timeout_ns : ASKER_HOOK_DEADLINE_NS;
    struct err nobody; /* without a terminal there is just one less to ask */
    struct asker *asker;

    if (options->approval_hook) {
        asker = asker_hook_new(flow->loop, options->approval_hook, deadline, err);
        if (!asker)
            return err_wrap(err, "--approval-hook");
        approvals_add_asker(flow->approvals, asker);
    }
    flow->prompt = prompt_open(flow->loop, &nobody);
    if (flow->prompt)
        approvals_add_asker(flow->approvals, asker_terminal_new(flow->prompt, NULL));
    return 0;
}

static void load_rules(struct run_flow *flow)
{
    struct settings *settings = &flow->settings;
    const struct rule_owner owner = config_file_owner(&settings->file);
    const struct rules_problem *problems;
    size_t len;

    flow->rules = rule_layers_load(&owner, settings->workspace->dir);
    problems = rules_problems(flow->rules, &len);
    for (size_t i = 0; i < len; i++)
        strv_pushf(&settings->warnings, "rules: %s", problems[i].text);
}

/* $PATH as the command has it. */
static const char *search_path(const struct settings *settings)
{
    for (size_t i = 0; i < settings->workspace->env.len; i++)
        if (strncmp(settings->workspace->env.items[i], "PATH=", 5) == 0)
            return settings->workspace->env.items[i] + 5;
    return NULL;
}

static enum confinement confinement(const struct settings *settings)
{
    if (settings->workspace->mode == SANDBOX_DISABLED)
        return CONFINEMENT_NONE;
    return confinement_of(&settings->workspace->profile, &settings->workspace->map, true);
}

static void fill_execution(struct run_flow *flow, char **argv)
{
    const struct settings *settings = &flow->settings;
    const struct rule_owner owner = config_file_owner(&settings->file);
    bool asks = settings->approval_from;

    host_finder_init(&flow->finder, search_path(settings), settings->workspace->dir);
    flow->job.on_started = on_started;
    flow->job.data = flow;
    flow->execution_options = (struct execution_options){
        .loop = flow->loop,
        .gate = asks ? EXECUTION_ASKS : EXECUTION_FORBIDS_ONLY,
        .approvals = flow->approvals,
        .rules = asks || !rules_is_empty(flow->rules) ? flow->rules : NULL,
        .rules_file = asks ? rule_layers_file(&owner) : NULL,
        .home = settings->file.home,
        .own_paths = strv_view(&settings->workspace->own_paths),
        .access = &settings->workspace->map,
        .finder = &flow->finder.finder,
        .policy = settings->approval,
        .confinement = confinement(settings),
        .profile = settings->workspace->profile_name,
        .argv = argv,
        .cwd = settings->workspace->dir,
        .is_last = true,
        .job = &flow->job,
        .prepare = prepare,
        .on_event = on_event,
        .on_done = on_done,
        .data = flow,
    };
}

int run_flow_run(struct run_flow *flow, char **argv, struct err *err)
{
    flow->first = flow->settings.workspace;
    flow->loop = loop_new(err);
    if (!flow->loop)
        return -1;
    load_rules(flow);
    if (flow->settings.approval_from) {
        flow->approvals = approvals_new(flow->loop, flow->options->approval_timeout_ns);
        if (add_askers(flow, err))
            return -1;
    }
    fill_execution(flow, argv);
    run_patch_fill(&flow->patch, &flow->execution_options, &flow->job);
    flow->execution = execution_start(&flow->execution_options);
    flow->flush = loop_timer_new(flow->loop, on_flush, flow);
    loop_timer_start(flow->flush, FLUSH_NS);
    return loop_run(flow->loop, &flow->is_done, err);
}
