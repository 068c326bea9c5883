/* `cordon run`: one command to its end, and what is to be said about it.
 *
 *     stdout, stderr   the command's own, live; with --json one JSON value at the end instead
 *     stderr           lines of ours, "cordon: ...", unless --quiet
 *
 * The command never gets a descriptor of the caller's: pipes or a terminal of its own stand
 * between, and bytes are passed on. The exit status is the command's (job/job_run.h).
 *
 * A command that is a patch (patch/call.h) is applied by the inner half of `cordon patch`, in the
 * sandbox of the run, with an empty environment. What is asked about and written down is the command
 * as it was given; only what is executed is another program. */
#include "cli/run.h"

#include "approval/approvals.h"
#include "approval/approver_hook.h"
#include "approval/approver_terminal.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/path.h"
#include "base/program.h"
#include "base/str.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/patch.h"
#include "cli/run_layer.h"
#include "cli/run_options.h"
#include "executor/execution.h"
#include "executor/execution_report.h"
#include "executor/outside.h"
#include "executor/patch_helper.h"
#include "job/job_run.h"
#include "job/result_text.h"
#include "loop/loop.h"
#include "patch/call.h"
#include "patch/patch.h"
#include "policy/access.h"
#include "policy/host_view.h"
#include "timeline/timeline.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static const struct option_group run_option_groups[] = {RUN_OPTION_GROUPS(0), {NULL, NULL}};

/* --- a command that is a patch --- */

/* Zeroed: the command is no patch. */
struct run_patch {
    struct patch_call call;
    char *cwd; /* where it is applied: absolute; NULL: it is no patch */
    struct strv helper;
    char *program; /* which the helper is: this one */
};

/* Looks at the command, which is to be run in the workspace. ERR_INVALID for a patch without the word
 * apply_patch, and for a `cd` to a directory that is not there. */
static int run_patch_init(struct run_patch *patch, char *const *argv,
                          const struct settings *settings, struct err *err)
{
    const struct workspace *workspace = settings->workspace;
    struct stat st;

    patch_call_read(argv, &patch->call);
    if (patch->call.kind == PATCH_CALL_BARE)
        return err_set(err, ERR_INVALID, "%s", patch_call_advice);
    if (patch->call.kind == PATCH_CALL_NONE)
        return 0;
    patch->program = program_self();
    if (!*patch->program)
        return err_set(err, ERR_SYSTEM, "/proc does not say which program this is");
    patch->cwd = path_clean(workspace->dir, patch->call.dir ? patch->call.dir : ".");
    patch_helper_words(workspace, settings->file.home, patch->cwd, patch_task_words[PATCH_APPLY],
                       patch_form_words[PATCH_TEXT], &patch->helper);
    if (stat(patch->cwd, &st))
        return err_sys(err, "the directory of the patch, %s", patch->cwd);
    return 0;
}

/* --- which streams --- */

/* A terminal that we may read from and change: a job in the background would be stopped for it. */
static bool is_own_terminal(int fd)
{
    return isatty(fd) && tcgetpgrp(fd) == getpgrp();
}

static void fill_job(const struct run_options *options, struct job_run_options *job)
{
    bool is_json = options->flags & RUN_JSON;
    bool is_own = is_own_terminal(STDIN_FILENO);
    struct stat st;
    bool is_null =
        fstat(STDIN_FILENO, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
    bool has_input =
        options->input == RUN_INPUT_PIPE && !is_null && (is_own || !isatty(STDIN_FILENO));
    /* All three, because on a terminal of its own stdout and stderr become one stream, and stdin is
     * no longer just bytes: neither must happen to a file or a pipe that the caller put there. */
    bool is_auto = !(is_json && options->input == RUN_INPUT_PIPE) && isatty(STDOUT_FILENO) &&
                   isatty(STDERR_FILENO) && is_own;
    bool has_terminal =
        options->terminal == RUN_TERMINAL_AUTO ? is_auto : options->terminal == RUN_TERMINAL_YES;

    job_run_defaults(job);
    job->timeout_ns = options->timeout_ns;
    job->kill_after_ns = options->kill_after_ns;
    /* What is more than that is only wanted for the document: it comes from there. */
    job->max_output =
        options->max_output < OUTPUT_MEMORY_DEFAULT ? options->max_output : OUTPUT_MEMORY_DEFAULT;
    job->spool = is_json && options->max_output > OUTPUT_MEMORY_DEFAULT ? options->max_output : 0;
    job->limits = options->limits;
    job->signals = JOB_RUN_SIGNALS_HANDLE;
    if (!is_json) {
        job->pump_fds[STREAM_STDOUT] = STDOUT_FILENO;
        job->pump_fds[STREAM_STDERR] = STDERR_FILENO;
    }
    job->stdio = has_terminal ? PROCESS_TTY : PROCESS_PIPES;
    job->input = has_input ? JOB_RUN_INPUT_FD : JOB_RUN_INPUT_NULL;
    job->input_fd = STDIN_FILENO;
    if (has_terminal && has_input && !is_json && is_own)
        job->terminal_fd = STDIN_FILENO;
}

/* --- the command --- */

/* Output that could not be written is a failure of ours, unless its reader just went away. */
static int exit_status(const struct job_result *result)
{
    int status = job_result_exit_code(result);

    for (int i = 0; i < STREAM_COUNT; i++) {
        int error = result->pump_error[i];

        if (!error || error == EPIPE)
            continue;
        console_say("writing to %s: %s", stream_name((enum stream)i), strerror(error));
        status = status ? status : EXIT_FAILED;
    }
    return status;
}

/* A failure of our own. */
static int run_fail(const struct run_options *options, const struct err *err)
{
    AUTO_JSON json_t *json = options->flags & RUN_JSON ? execution_failure_document(err) : NULL;

    if (json)
        console_print_json(json);
    return console_fail(err);
}

/* Everything that lives as long as the command. */
struct run_flow {
    struct run_options options;
    const struct run_observer *observer; /* NULL: none */
    struct run_audit audit;
    struct settings settings;
    struct run_layer layer;
    const struct workspace *told; /* whose lacks were warned of */
    struct run_patch patch;       /* what the command is, if it is one */
    struct loop *loop;
    struct loop_timer *flush; /* of the audit, when the command runs for long */
    struct prompt *prompt;    /* the terminal that is asked at; NULL: none */
    struct approvals *approvals;
    struct execution_options execution_options;
    struct job_run_options job;
    struct execution *execution;
    FILE *trace;     /* --trace-to; NULL: none */
    uint64_t traced; /* of the timeline, the number of the last event that was told */
    struct run_later later;
    size_t warned;                /* of the warnings: those that were said */
    struct loop_signals *signals; /* while a question is open and no command runs; NULL: none */
    int interrupted;              /* the signal that came then; 0: none */
    bool will_flush;              /* `flush` runs */
    bool is_done;
};

#define FLUSH_NS UINT64_C(1000000000) /* 1 s: quicker commands write everything at their end */

static void run_flow_done(struct run_flow *flow)
{
    if (flow->prompt)
        prompt_set_owner(flow->prompt, NULL,
                         NULL); /* a question that is open has nothing to lend */
    if (flow->execution)
        execution_free(flow->execution);
    approvals_free(flow->approvals);
    prompt_free(flow->prompt);
    loop_timer_free(flow->flush);
    loop_signals_free(flow->signals);
    loop_free(flow->loop);
    patch_call_done(&flow->patch.call);
    free(flow->patch.cwd);
    free(flow->patch.program);
    strv_done(&flow->patch.helper);
    if (flow->trace)
        fclose(flow->trace);
    settings_done(&flow->settings);
    run_layer_done(&flow->layer); /* after those who write to it */
    run_audit_done(&flow->audit);
    run_options_done(&flow->options);
    strv_done(&flow->later.paths);
}

/* --- attempts --- */

/* Those of which only now it is known where they are. */
static void tell_ports(const struct run_flow *flow)
{
    const struct publications *wanted =
        &flow->settings.workspace->profile.network_policy.publications;
    const struct job *job = flow->execution ? execution_job(flow->execution) : NULL;
    const struct publications *got = job ? job_publications(job) : NULL;

    for (size_t i = 0; got && i < got->len && !(flow->options.flags & RUN_QUIET); i++) {
        struct net_host host;
        AUTO_FREE char *name = NULL;

        if (wanted->items[i].host_port)
            continue;
        net_host_from_address(&got->items[i].address, &host);
        name = net_host_format(host.text, got->items[i].host_port);
        console_say("%s leads to port %u of the command", name, got->items[i].port);
    }
}

/* Says, once each, what there is to warn of: before any output of the command, once the sandbox
 * stands, since which layers this host has is only known then. */
static void on_started(void *data)
{
    struct run_flow *flow = data;
    const struct workspace *workspace = flow->settings.workspace;
    struct strv *warnings = &flow->settings.warnings;

    if (workspace->sandbox && workspace != flow->told)
        execution_warn_of_defences(workspace->sandbox, warnings);
    if (workspace != flow->told && flow->execution && execution_job(flow->execution))
        resource_limits_warn(job_limits(execution_job(flow->execution), NULL), warnings);
    if (workspace != flow->told)
        tell_ports(flow);
    flow->told = workspace;
    for (; flow->warned < warnings->len; flow->warned++)
        if (!(flow->options.flags & RUN_QUIET))
            console_say("%s", warnings->items[flow->warned]);
}

static void on_attempt(void *data, enum run_where where, struct workspace *workspace)
{
    struct run_flow *flow = data;

    flow->settings.workspace = workspace;
    flow->traced = flow->audit.trail.seq = 0; /* each attempt has timelines of its own */
    execution_warn_of_attempt(workspace, where, &flow->settings.warnings);
}

/* --- what happens --- */

static void flush_later(struct run_flow *flow)
{
    if (flow->will_flush || !run_audit_has_some(&flow->audit))
        return;
    loop_timer_start(flow->flush, FLUSH_NS);
    flow->will_flush = true;
}

static void on_flush(void *data)
{
    struct run_flow *flow = data;

    run_audit_flush(&flow->audit, 0);
    flow->will_flush = false;
    flush_later(flow); /* what others keep out by their lock, or a full disk */
}

static void on_interrupt(void *data, int signal)
{
    struct run_flow *flow = data;

    flow->interrupted = signal;
    flow->is_done = true;
}

/* Ctrl-C at a question is an end that has to be told of; while a command runs the signals are its own. */
static void watch_signals(struct run_flow *flow, const struct execution_event *event)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, 0};
    struct err ignored; /* then they end us as they do others */

    if (event->held)
        return;
    if (event->kind == EXECUTION_ASKED && !flow->signals)
        flow->signals = loop_signals_new(flow->loop, signals, on_interrupt, flow, &ignored);
    if (event->kind == EXECUTION_ANSWERED)
        loop_signals_free(TAKE_PTR(flow->signals));
}

static void on_event(void *data, const struct execution_event *event)
{
    struct run_flow *flow = data;

    watch_signals(flow, event);

    if (event->kind == EXECUTION_RETRIED && !(flow->options.flags & RUN_QUIET))
        console_say("once more, with %s", event->words);
    run_audit_event(&flow->audit, &flow->settings, event);
    flush_later(flow);
}

static void write_trace(FILE *trace, const struct timeline_event *event)
{
    AUTO_JSON json_t *json = timeline_event_to_json(event);

    json_dumpf(json, trace, JSON_COMPACT);
    fputc('\n', trace);
}

static void on_traced(void *data, const struct job *job)
{
    struct run_flow *flow = data;
    const struct timeline *timeline = job_timeline(job);
    const struct timeline_event *event;

    while ((flow->trace || flow->observer) && (event = timeline_after(timeline, flow->traced))) {
        if (flow->trace)
            write_trace(flow->trace, event);
        if (flow->observer)
            flow->observer->on_event(flow->observer->data, event);
        flow->traced = event->seq;
    }
    if (job_audit_timeline(job)) {
        run_audit_trace(&flow->audit, job_audit_timeline(job));
        flush_later(flow);
        if (flow->options.policy.reports_later)
            run_later_look(&flow->later, job);
    }
}

static void on_done(void *data)
{
    ((struct run_flow *)data)->is_done = true;
}

/* --- who is asked --- */

/* A question is shown while the command may have the terminal. */
static void on_lend(void *data, bool is_lent)
{
    struct run_flow *flow = data;

    if (!flow->execution)
        return;
    console_set_raw(!is_lent && flow->job.terminal_fd >= 0);
    execution_lend_terminal(flow->execution, is_lent);
}

/* A command that could put another one in its place could answer itself. */
static int find_hook(const struct settings *settings, const char *name, struct outside *ret,
                     struct err *err)
{
    const struct access_map *access = settings->workspace->access;
    AUTO_FREE char *cwd = getcwd(NULL, 0);
    AUTO_FREE char *dir = NULL;

    if (outside_hook(name, cwd ? cwd : "/", ret, err))
        return -1;
    dir = path_parent(ret->program);
    if (access && access->restricted && path_may_change(&host_view_real, access, dir))
        console_say("commands can write the directory of the hook %s; better keep it elsewhere",
                    ret->program);
    return 0;
}

static int add_approvers(struct run_flow *flow, struct err *err)
{
    const struct run_options *options = &flow->options;
    uint64_t deadline =
        options->approval_timeout_ns ? options->approval_timeout_ns : APPROVER_HOOK_DEADLINE_NS;
    struct err ignored; /* without a terminal there is just one less to ask */
    struct approver *approver;

    if (!flow->settings.approval_from)
        return 0;
    flow->approvals = approvals_new(flow->loop, options->approval_timeout_ns);
    if (options->approval_hook) {
        AUTO(outside_done) struct outside hook = {.program = NULL};

        approver =
            find_hook(&flow->settings, options->approval_hook, &hook, err)
                ? NULL
                : approver_hook_new(flow->loop, hook.program, strv_view(&hook.env), deadline, err);
        if (!approver)
            return err_wrap(err, "--approval-hook");
        approvals_add_approver(flow->approvals, approver);
    }
    flow->prompt = prompt_open(flow->loop, &ignored);
    if (!flow->prompt)
        return 0;
    prompt_set_owner(flow->prompt, on_lend, flow);
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
    flow->job.on_traced = on_traced;
    flow->job.data = flow;
    if (!flow->patch.cwd)
        return;
    /* the helper runs in place of the command, and is fed with the patch */
    options->replacement_argv = strv_view(&flow->patch.helper);
    options->cwd = flow->patch.cwd;
    flow->job.program = flow->patch.program;
    flow->job.stdio = PROCESS_PIPES;
    flow->job.terminal_fd = -1;
    flow->job.input = JOB_RUN_INPUT_DATA;
    flow->job.input_data = flow->patch.call.text;
    flow->job.input_len = flow->patch.call.text_len;
}

/* Of a disk that is full there is less in the document than was asked for. */
static void warn_of_spool(struct run_flow *flow, const struct execution_result *execution)
{
    for (size_t i = 0; i < execution->attempts_len; i++)
        for (int k = 0; k < STREAM_COUNT; k++) {
            struct output_info info;

            output_info(job_stream(execution->attempts[i].result.job, (enum stream)k), &info);
            if (info.spool != SPOOL_FAILED)
                continue;
            console_say("%s could not be kept on disk ($TMPDIR or /tmp): %s",
                        stream_name((enum stream)k), strerror(info.spool_errno));
            strv_pushf(&flow->settings.warnings, "%s could not be kept on disk: %s",
                       stream_name((enum stream)k), strerror(info.spool_errno));
        }
}

/* An exit status. */
static int print_document(struct run_flow *flow, const struct execution_result *execution)
{
    AUTO(result_texts_done) struct result_texts texts = {0};
    AUTO_JSON json_t *json = NULL;
    json_t *changes;

    warn_of_spool(flow, execution);
    json =
        execution_document(execution, flow->settings.workspace, strv_view(&flow->settings.warnings),
                           flow->options.policy.reports_later ? &flow->later : NULL, &texts);
    changes = execution->outcome == EXECUTION_RAN
                  ? run_layer_end(&flow->layer, &flow->audit, flow->settings.workspace->dir, true)
                  : NULL;
    if (changes)
        json_object_set_new(json, "changes", changes);
    return console_print_result(json, &texts);
}

/* `cordon run 'make test'`: one word, which no program is called by. */
static void hint_at_shell(char *const *argv)
{
    if (!argv[1] && argv[0][strcspn(argv[0], " \t\n;|&")] && !strchr(argv[0], '\''))
        console_say("that is one word, the name of a program; for a command of a shell: cordon run "
                    "-- sh -c '%s'",
                    argv[0]);
}

static int report_attempt(struct run_flow *flow, const struct execution_result *execution)
{
    const struct job_result *result = &execution->attempts[execution->attempts_len - 1].result;
    bool is_whole = result->end == JOB_RUN_EXITED || result->end == JOB_RUN_DENIED ||
                    result->end == JOB_RUN_FAILED_TO_START;
    AUTO(strv_done) struct strv notes = {0};
    int status = exit_status(result);

    if (flow->patch.cwd && !is_whole)
        console_say("the patch was interrupted: \"cordon patch --recover\" in %s, or the next "
                    "patch there, completes it or takes it back",
                    flow->patch.cwd);
    if (flow->options.flags & RUN_JSON) {
        int printed = print_document(flow, execution);

        return printed == EXIT_OK ? status : printed;
    }
    if (job_result_has_failed(result))
        console_say("%s", result->process->failure.msg);
    if (status == EXIT_NOT_FOUND)
        hint_at_shell(flow->execution_options.argv);
    if (!(flow->options.flags & RUN_QUIET) && !flow->observer) {
        execution_notes(result, &notes);
        execution_tmp_notes(result, flow->execution_options.argv, &notes);
    }
    if (!flow->observer && (!flow->trace || !job_timeline(result->job)))
        execution_trace_notes(result, flow->options.policy.topics, &notes);
    if (flow->options.policy.reports_later)
        execution_later_notes(&flow->later, result, &notes);
    for (size_t i = 0; i < notes.len; i++)
        console_say("%s", notes.items[i]);
    return status;
}

static int run_report(struct run_flow *flow)
{
    const struct execution_result *execution = execution_result(flow->execution);

    for (size_t i = 0; i < execution->warnings.len; i++)
        console_say("%s", execution->warnings.items[i]);
    if (execution->outcome == EXECUTION_RAN)
        return report_attempt(flow, execution);
    if (execution->outcome == EXECUTION_FAILED)
        return run_fail(&flow->options, &execution->failure);
    if (flow->options.flags & RUN_JSON)
        print_document(flow, execution);
    console_say("not run: %s", execution->reason);
    return EXIT_REFUSED;
}

static int report_interrupt(struct run_flow *flow)
{
    struct err err;

    err_set(&err, ERR_FORBIDDEN, "%s before the question was answered",
            flow->interrupted == SIGINT ? "interrupted" : "ended");
    run_audit_failure(&flow->audit, err.msg);
    run_fail(&flow->options, &err);
    return 128 + flow->interrupted;
}

static const uint64_t begin_wait_ns = UINT64_C(100000000); /* 0.1 s, when others hold the log */

/* Runs the command to its end and tells of it; the exit status. */
static int run_execution(struct run_flow *flow, char **argv)
{
    struct err err;
    int status = -1;

    fill_job(&flow->options, &flow->job);
    console_set_raw(flow->job.terminal_fd >= 0);
    flow->loop = loop_new(&err);
    if (flow->loop && add_approvers(flow, &err) == 0) {
        fill_options(flow, argv);
        flow->flush = loop_timer_new(flow->loop, on_flush, flow);
        flow->execution = execution_start(&flow->execution_options);
        strv_push_all(&flow->settings.warnings,
                      strv_view(&execution_result(flow->execution)->problems));
        flush_later(flow); /* that it began, when others held the log */
        execution_begin(flow->execution);
        status = loop_run(flow->loop, &flow->is_done, &err);
    }
    console_set_raw(false);
    on_started(flow); /* when it was never started, there is still to warn of what is known */
    if (flow->interrupted)
        return report_interrupt(flow);
    if (status) {
        run_audit_failure(&flow->audit, err.msg);
        return run_fail(&flow->options, &err);
    }
    status = run_report(flow);
    if (!(flow->options.flags & RUN_JSON) &&
        execution_result(flow->execution)->outcome == EXECUTION_RAN)
        json_decref(
            run_layer_end(&flow->layer, &flow->audit, flow->settings.workspace->dir, false));
    run_audit_trace(&flow->audit, NULL);
    run_audit_result(&flow->audit, execution_result(flow->execution));
    return status;
}

/* Line by line: who follows the file sees what happens. */
static int open_trace(struct run_flow *flow, struct err *err)
{
    const char *path = flow->options.trace_to;

    if (!flow->options.policy.topics)
        return err_set(err, ERR_INVALID, "--trace-to needs --trace");
    flow->trace = fopen(path, "we"); /* allow blocking fopen: as behind > in a shell */
    if (!flow->trace)
        return err_sys(err, "opening %s", path);
    setvbuf(flow->trace, NULL, _IOLBF, 0);
    return 0;
}

static int find_layer(const struct policy_options *policy, const struct config *config,
                      const char *dir, struct layer **ret, struct err *err)
{
    struct run_flow *flow = policy->find_layer_data;

    if (run_layer_open(&flow->layer, policy, config, dir, err))
        return -1;
    *ret = flow->layer.layer;
    return 0;
}

int run_command(struct run_options *given, char **command, const struct run_observer *observer)
{
    AUTO(run_flow_done) struct run_flow flow = {.options = *given, .observer = observer};
    struct run_options *options = &flow.options;
    struct err err;

    *given = (struct run_options){.flags = 0};
    if (options->approval_hook && strchr(options->approval_hook, '/'))
        options->policy.guarded = options->approval_hook;
    if (!*command) {
        err_set(&err, ERR_INVALID, "there is no command to run: cordon run [OPTION]... -- COMMAND");
        return run_fail(options, &err);
    }
    /* The end of a reader must not be ours before what is on the host for the run is taken away. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* output that may not grow on disk is a warning */
    flow.layer =
        (struct run_layer){.given = &options->layer, .is_quiet = options->flags & RUN_QUIET};
    if (!observer) {
        options->policy.find_layer = find_layer;
        options->policy.find_layer_data = &flow;
    }
    if (settings_init(&flow.settings, &options->policy, &err)) {
        if (flow.layer.is_default)
            err_wrap(&err, "[undo] default = \"layer\" (--no-undo does without)");
        return run_fail(options, &err);
    }
    if (options->approval_hook && !flow.settings.approval_from) {
        err_set(&err, ERR_INVALID, "--approval-hook needs --ask-for-approval POLICY");
        return run_fail(options, &err);
    }
    if (options->trace_to && open_trace(&flow, &err))
        return run_fail(options, &err);
    if (!(options->flags & RUN_NO_AUDIT))
        run_audit_init(&flow.audit, &flow.settings);
    if (run_patch_init(&flow.patch, command, &flow.settings, &err))
        return run_fail(options, &err);
    if (flow.patch.cwd)
        run_audit_patch_begin(&flow.audit, flow.patch.cwd, flow.patch.call.text_len);
    else
        run_audit_begin(&flow.audit, &flow.settings, command);
    run_audit_flush(&flow.audit, begin_wait_ns); /* who kills us cannot hide that it began */
    return run_execution(&flow, command);
}

static int run_main(char **argv)
{
    struct run_options options;
    char **command;
    int status;

    run_options_init(&options);
    if (command_parse(&command_run, argv, &options, &command, &status))
        return run_command(&options, command, NULL);
    run_options_done(&options);
    return status;
}

const struct command command_run = {
    .name = "run",
    .summary = "run a command in a sandbox",
    .usage = "[OPTION]... [--] COMMAND [ARGUMENT]...",
    .about = "Runs COMMAND in a sandbox. Unless something else is said it may read every file that "
             "you can read, write below the current directory and in a /tmp of its own, and reach "
             "nothing but a localhost of its own; protected names (--protect) stay "
             "read-only. What it leaves running is ended with it.\n"
             "\n"
             "The exit status is that of COMMAND; 124 when it ran out of time, 125 when Cordon "
             "failed or was called wrongly, 126 when COMMAND cannot be executed, 127 when it is "
             "not found, 128+N when signal N ended it.\n",
    .examples = "  cordon run -- make test\n"
                "  cordon run --timeout 5m --max-memory 2G -- pytest -q\n"
                "  cordon run --allow-host registry.example.org --with npm -- npm install\n"
                "  cordon run --layer -- ./agent-step\n"
                "  cordon run --undo -- make format\n"
                "  cordon run --git commit -- git commit -am 'a commit'\n"
                "  cordon run --deny '**/.env' --deny ~/.ssh -- ./agent-step\n"
                "  cordon run -C build --env CC=clang -- cmake ..\n"
                "  cordon run --json -- ls /root | jq .denials\n",
    .page = "cordon-run",
    .groups = run_option_groups,
    .run = run_main,
};
