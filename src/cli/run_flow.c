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
#include "policy/profile_overlay.h"
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
    for (size_t i = 0; i < RUN_STAGES; i++) {
        sandbox_free(flow->stages[i].sandbox);
        settings_done(&flow->stages[i].own);
    }
    run_patch_done(&flow->patch);
    settings_done(&flow->settings);
    *flow = (struct run_flow){0};
}

const struct settings *run_flow_settings(const struct run_flow *flow)
{
    return flow->stages_len ? flow->stages[flow->stages_len - 1].settings : &flow->settings;
}

/* --- attempts --- */

static struct strv *stage_warnings(struct run_flow *flow, const struct run_stage *stage)
{
    return stage->settings == &flow->settings ? &flow->settings.warnings
                                              : &flow->stages[stage - flow->stages].own.warnings;
}

void run_flow_warn(struct run_flow *flow)
{
    struct run_stage *stage = flow->stages_len ? &flow->stages[flow->stages_len - 1] : NULL;
    struct strv *warnings = stage ? stage_warnings(flow, stage) : &flow->settings.warnings;

    if (flow->warned == flow->stages_len + 1)
        return;
    flow->warned = flow->stages_len + 1;
    if (stage)
        run_report_degradation(stage->sandbox, warnings);
    for (size_t i = 0; !(flow->options->flags & RUN_QUIET) && i < warnings->len; i++)
        console_say("%s", warnings->items[i]);
}

/* Once the sandbox stands, since which layers this host has is only known then. */
static void on_started(void *data)
{
    run_flow_warn(data);
}

/* The settings of the flow, or, for an attempt that is to get more, some of its own. */
static int make_settings(struct run_flow *flow, const struct execution_place *place,
                         struct run_stage *stage, struct err *err)
{
    static const struct profile_overlay nothing;
    struct policy_options options = flow->options->policy;

    if (place->place == REQUIREMENT_SANDBOXED && !place->widened) {
        stage->settings = &flow->settings;
        return 0;
    }
    if (place->place == REQUIREMENT_UNCONFINED)
        options.mode = SANDBOX_DISABLED;
    if (settings_init_widened(&stage->own, &options, place->widened ? place->widened : &nothing,
                              err))
        return -1;
    stage->settings = &stage->own;
    return 0;
}

static int prepare(void *data, const struct execution_place *place, struct execution_stage *ret,
                   struct err *err)
{
    static char *const no_env[] = {NULL};
    struct run_flow *flow = data;
    struct run_stage *stage = &flow->stages[flow->stages_len];

    if (make_settings(flow, place, stage, err))
        return -1;
    if (place->place == REQUIREMENT_UNCONFINED)
        strv_push(stage_warnings(flow, stage), "no sandbox: a rule or an answer allows that");
    else
        run_report_no_sandbox(stage->settings, stage_warnings(flow, stage));
    stage->sandbox = settings_sandbox(stage->settings, err);
    if (!stage->sandbox)
        return -1;
    flow->stages_len++;
    *ret = (struct execution_stage){
        .sandbox = stage->sandbox,
        .access = stage->settings->mode == SANDBOX_DISABLED ? NULL : sandbox_access(stage->sandbox),
        .env = run_patch_is_one(&flow->patch) ? no_env : strv_view(&stage->settings->env),
    };
    return 0;
}

/* --- what happens --- */

static void on_event(void *data, const struct execution_event *event)
{
    struct run_flow *flow = data;

    if (event->kind == EXECUTION_RETRIED && !(flow->options->flags & RUN_QUIET))
        console_say("once more, with %s", event->words);
    run_audit_event(flow->audit, run_flow_settings(flow), event);
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

    flow->rules = rule_layers_load(&owner, settings->folder);
    problems = rules_problems(flow->rules, &len);
    for (size_t i = 0; i < len; i++)
        strv_pushf(&settings->warnings, "rules: %s", problems[i].text);
}

/* $PATH as the command has it. */
static const char *search_path(const struct settings *settings)
{
    for (size_t i = 0; i < settings->env.len; i++)
        if (strncmp(settings->env.items[i], "PATH=", 5) == 0)
            return settings->env.items[i] + 5;
    return NULL;
}

static enum confinement confinement(const struct settings *settings)
{
    if (settings->mode == SANDBOX_DISABLED)
        return CONFINEMENT_NONE;
    return confinement_of(&settings->chosen.profile, &settings->access, true);
}

static void fill_execution(struct run_flow *flow, char **argv)
{
    const struct settings *settings = &flow->settings;
    const struct rule_owner owner = config_file_owner(&settings->file);
    bool asks = settings->approval_from;

    host_finder_init(&flow->finder, search_path(settings), settings->folder);
    flow->job.on_started = on_started;
    flow->job.data = flow;
    flow->execution_options = (struct execution_options){
        .loop = flow->loop,
        .gate = asks ? EXECUTION_ASKS : EXECUTION_FORBIDS_ONLY,
        .approvals = flow->approvals,
        .rules = asks || !rules_is_empty(flow->rules) ? flow->rules : NULL,
        .rules_file = asks ? rule_layers_file(&owner) : NULL,
        .home = settings->file.home,
        .own_paths = strv_view(&settings->own_paths),
        .access = &settings->access,
        .finder = &flow->finder.finder,
        .policy = settings->approval,
        .confinement = confinement(settings),
        .profile = settings->profile_name,
        .argv = argv,
        .cwd = settings->folder,
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
