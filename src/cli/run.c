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
#include "executor/execution.h"
#include "executor/outside.h"
#include "job/job_run.h"
#include "loop/loop.h"
#include "patch/call.h"
#include "patch/patch.h"
#include "policy/access.h"
#include "timeline/timeline.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* --- options --- */

enum run_terminal {
    RUN_TERMINAL_AUTO, /* when stdin, stdout and stderr are one */
    RUN_TERMINAL_YES,
    RUN_TERMINAL_NO,
};

enum run_flag { RUN_JSON = 1, RUN_QUIET = 2, RUN_NO_AUDIT = 4 };

enum run_input { RUN_INPUT_PIPE, RUN_INPUT_NULL };

struct run_options {
    struct policy_options policy;
    enum run_terminal terminal;
    enum run_input input; /* --stdin */
    unsigned flags;       /* of enum run_flag */
    uint64_t timeout_ns;
    uint64_t kill_after_ns;
    uint64_t max_output;
    struct resource_limits limits;
    const char *trace_to;         /* a file for the timeline; NULL: none */
    const char *approval_hook;    /* NULL: none */
    uint64_t approval_timeout_ns; /* 0: none */
};

/* What is retained has to fit into memory several times, for the JSON text of it. */
#define MAX_OUTPUT_LIMIT (UINT64_C(1) << 30)

static const char *const stdin_words[] = {"pipe", "null", NULL};

static const struct option approval_options[] = {
    {.name = "ask-for-approval",
     .letter = 'a',
     .value = "POLICY",
     .words = policy_approval_words,
     .set = policy_set_approval,
     .offset = offsetof(struct run_options, policy),
     .help =
         "Who is asked before the command runs, at the terminal: untrusted asks about "
         "everything that is not known to be harmless; on-request (or on-failure, granular) "
         "about what rules want asked; never refuses that. After a denial you may be "
         "asked to run it once more with what it lacked. granular takes its switches from the "
         "config file. "
         "Default: approval_policy of the config file; without one no question is asked, and of "
         "the rules only those that forbid count."},
    {.name = "yes-means-unsandboxed",
     INTO_TRUE(struct run_options, policy.yes_means_unsandboxed),
     .help = "As in Codex: under untrusted and granular a yes to the first question also lets the "
             "command run once more without a sandbox when it was refused something, and a "
             "question after a denial offers that. The command can bring this about."},
    {.name = "approval-hook",
     .value = "PROGRAM",
     INTO_TEXT(struct run_options, approval_hook),
     .help = "Is asked first: it gets the question as JSON on stdin and prints {\"decision\": "
             "\"approved\"}, \"denied\" or \"ask\" (then the terminal is asked)."},
    {.name = "approval-timeout",
     .value = "TIME",
     INTO_DURATION(struct run_options, approval_timeout_ns),
     .help = "No answer after TIME is a no. Default: none; a hook has 60s."},
    {.name = NULL},
};

static const struct option limit_options[] = {
    {.name = "timeout",
     .letter = 't',
     .value = "TIME",
     INTO_DURATION(struct run_options, timeout_ns),
     .help =
         "Ends the command after TIME (500ms, 10s, 5m, 1h; a plain number is seconds) and exits "
         "with 124."},
    {.name = "kill-after",
     .value = "TIME",
     INTO_DURATION(struct run_options, kill_after_ns),
     .help = "How long the command has after SIGTERM before it gets SIGKILL, with everything that "
             "it started. Default: 2s."},
    {.name = "max-memory",
     .value = "SIZE",
     INTO_SIZE(struct run_options, limits.memory),
     .help = "Memory (512M, 2G): of all its processes with a cgroup, of each without."},
    {.name = "max-cpu-time",
     .value = "TIME",
     INTO_DURATION(struct run_options, limits.cpu_time_ns),
     .help = "CPU time of each process, rounded up to seconds."},
    {.name = "max-pids",
     .value = "N",
     INTO_COUNT(struct run_options, limits.pids),
     .help = "Processes and threads: its own with a cgroup; all of yours without, and none at all "
             "are counted for root then."},
    {.name = "max-file-size",
     .value = "SIZE",
     INTO_SIZE(struct run_options, limits.file_size),
     .help = "Size of a file that it writes."},
    {.name = "max-output",
     .value = "SIZE",
     INTO_SIZE(struct run_options, max_output),
     .max = MAX_OUTPUT_LIMIT,
     .wrong = "at most 1G can be kept",
     .help = "Bytes of each stream that are kept for --json: half of it the beginning, half the "
             "end. Default: 1M. What is shown live is never cut."},
    {.name = NULL},
};

static int set_trace(const struct option *option, void *member, const char *value, struct err *err)
{
    unsigned *topics = member;

    if (value)
        return timeline_parse_topics(value, topics, err);
    *topics = TIMELINE_ALL;
    return 0;
}

static const struct option trace_options[] = {
    {.name = "trace",
     .value = "WHAT",
     .may_lack = true,
     .set = set_trace,
     .offset = offsetof(struct run_options, policy.topics),
     .help =
         "Tells at the end what the command did, in its order, with what it was refused. WHAT is a "
         "list of files (opened for writing, made, changed, removed, renamed, linked), network "
         "(connected, bound) and exec (the programs that ran, also as a tree); without it all. "
         "With --json it is \"events\" and \"execs\"."},
    {.name = "trace-to",
     .value = "FILE",
     INTO_NOT_EMPTY(struct run_options, trace_to),
     .help =
         "Writes the events to FILE while the command runs, one JSON object a line, and nothing "
         "of it to stderr. FILE is made, or emptied."},
    {.name = "report",
     INTO_TRUE(struct run_options, policy.reports_later),
     .help = "Tells at the end which files the command made or changed that other programs run or "
             "obey by themselves, outside of the sandbox: Makefile, package.json, CI files, "
             "conftest.py, AGENTS.md, ... With --json it is \"runs_later\"."},
    {.name = NULL},
};

static const struct option stream_options[] = {
    {.name = "tty",
     INTO_CHOICE(struct run_options, terminal, RUN_TERMINAL_YES),
     .help =
         "Gives the command a terminal of its own (never yours). The default when stdin, stdout "
         "and stderr are all a terminal."},
    {.name = "no-tty",
     INTO_CHOICE(struct run_options, terminal, RUN_TERMINAL_NO),
     .help = "Gives it pipes, also on a terminal."},
    {.name = "stdin",
     .value = "KIND",
     .words = stdin_words,
     INTO_WORD(struct run_options, input, RUN_INPUT_PIPE),
     .help = "pipe (the default): what comes in here is passed on, through a pipe. null: nothing; "
             "of use in a loop that reads stdin itself."},
    {.name = "json",
     .letter = 'j',
     INTO_FLAG(struct run_options, flags, RUN_JSON),
     .help = "Shows nothing live; prints one JSON value at the end: how it ended, its output, its "
             "usage, what was refused, which layers held."},
    {.name = "quiet",
     .letter = 'q',
     INTO_FLAG(struct run_options, flags, RUN_QUIET),
     .help = "Says nothing about the sandbox on stderr; errors of Cordon itself are still said."},
    {.name = "no-audit",
     INTO_FLAG(struct run_options, flags, RUN_NO_AUDIT),
     .help = "Leaves this run out of the audit log (cordon log)."},
    {.name = NULL},
};

static const struct option_group run_option_groups[] = {
    {"Permissions", policy_permission_options, offsetof(struct run_options, policy)},
    {"Environment", policy_environment_options, offsetof(struct run_options, policy)},
    {"Approval", approval_options},
    {"Limits", limit_options},
    {"Watching", trace_options},
    {"Input and output", stream_options},
    {NULL, NULL},
};

/* --- a command that is a patch --- */

enum { PATCH_WORDS = 4 };

/* Zeroed: the command is no patch. */
struct run_patch {
    struct patch_call call;
    char *cwd; /* where it is applied: absolute; NULL: it is no patch */
    char *helper[PATCH_WORDS];
    char *program; /* which the helper is: this one */
};

/* Looks at the command, which is to be run in `dir`. ERR_INVALID for a patch without the word
 * apply_patch, and for a `cd` to a directory that is not there. */
static int run_patch_init(struct run_patch *patch, char *const *argv, const char *dir,
                          struct err *err)
{
    struct stat st;

    patch_call_read(argv, &patch->call);
    if (patch->call.kind == PATCH_CALL_BARE)
        return err_set(err, ERR_INVALID, "%s", patch_call_advice);
    if (patch->call.kind == PATCH_CALL_NONE)
        return 0;
    patch->program = program_self();
    if (!*patch->program)
        return err_set(err, ERR_SYSTEM, "/proc does not say which program this is");
    patch->helper[0] = (char *)PATCH_HELPER_NAME;
    patch->helper[1] = (char *)patch_task_words[PATCH_APPLY];
    patch->helper[2] = (char *)patch_form_words[PATCH_TEXT];
    patch->cwd = path_clean(dir, patch->call.dir ? patch->call.dir : ".");
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
    job->max_output = options->max_output;
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
    if (options->flags & RUN_JSON)
        run_report_failure_json(err);
    return console_fail(err);
}

/* Everything that lives as long as the command. */
struct run_flow {
    struct run_options options;
    struct run_audit audit;
    struct settings settings;
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
    size_t warned; /* of the warnings: those that were said */
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
    loop_free(flow->loop);
    patch_call_done(&flow->patch.call);
    free(flow->patch.cwd);
    free(flow->patch.program);
    if (flow->trace)
        fclose(flow->trace);
    settings_done(&flow->settings);
    run_audit_done(&flow->audit);
    policy_options_done(&flow->options.policy);
    strv_done(&flow->later.paths);
}

/* --- attempts --- */

/* Says, once each, what there is to warn of: before any output of the command, once the sandbox
 * stands, since which layers this host has is only known then. */
static void on_started(void *data)
{
    struct run_flow *flow = data;
    const struct workspace *workspace = flow->settings.workspace;
    struct strv *warnings = &flow->settings.warnings;

    if (workspace->sandbox && workspace != flow->told)
        run_report_degradation(workspace->sandbox, warnings);
    flow->told = workspace;
    for (; flow->warned < warnings->len; flow->warned++)
        if (!(flow->options.flags & RUN_QUIET))
            console_say("%s", warnings->items[flow->warned]);
}

static void on_attempt(void *data, enum run_where where, struct workspace *workspace)
{
    struct run_flow *flow = data;
    struct strv *warnings = &flow->settings.warnings;

    flow->settings.workspace = workspace;
    flow->traced = flow->audit.trail.seq = 0; /* each attempt has timelines of its own */
    if (where == RUN_UNCONFINED)
        strv_push(warnings, "no sandbox: a rule or an answer allows that");
    else if (workspace->mode == SANDBOX_DISABLED && workspace->profile.kind == PROFILE_DISABLED)
        strv_pushf(warnings, "no sandbox: the profile is %s (from %s)", workspace->profile_name,
                   workspace->profile_from);
    else if (workspace->mode == SANDBOX_DISABLED)
        strv_push(warnings, "no sandbox: --sandbox disabled");
    else if (flow->options.policy.topics & TIMELINE_NETWORK &&
             workspace->profile.network == NETWORK_ENABLED)
        strv_push(warnings, "the trace has no connects: they are only seen while the network is "
                            "restricted");
}

/* --- what happens --- */

static void on_event(void *data, const struct execution_event *event)
{
    struct run_flow *flow = data;

    if (event->kind == EXECUTION_RETRIED && !(flow->options.flags & RUN_QUIET))
        console_say("once more, with %s", event->words);
    run_audit_event(&flow->audit, &flow->settings, event);
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

    while (flow->trace && (event = timeline_after(timeline, flow->traced))) {
        write_trace(flow->trace, event);
        flow->traced = event->seq;
    }
    if (job_audit_timeline(job)) {
        run_audit_trace(&flow->audit, job_audit_timeline(job));
        if (flow->options.policy.reports_later)
            run_later_look(&flow->later, job);
    }
}

static void on_flush(void *data)
{
    run_audit_flush(&((struct run_flow *)data)->audit, 0);
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
    if (access && access->restricted && access_map_check(access, dir) == ACCESS_WRITE)
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
    options->replacement_argv = flow->patch.helper;
    options->cwd = flow->patch.cwd;
    flow->job.program = flow->patch.program;
    flow->job.stdio = PROCESS_PIPES;
    flow->job.terminal_fd = -1;
    flow->job.input = JOB_RUN_INPUT_DATA;
    flow->job.input_data = flow->patch.call.text;
    flow->job.input_len = flow->patch.call.text_len;
}

static int report_attempt(const struct run_flow *flow, const struct execution_result *execution)
{
    const struct job_result *result = &execution->attempts[execution->attempts_len - 1].result;
    bool is_whole = result->end == JOB_RUN_EXITED || result->end == JOB_RUN_DENIED ||
                    result->end == JOB_RUN_FAILED_TO_START;
    int status = exit_status(result);

    if (flow->patch.cwd && !is_whole)
        console_say("the patch was interrupted: \"cordon patch --recover\" in %s, or the next "
                    "patch there, completes it or takes it back",
                    flow->patch.cwd);
    if (flow->options.flags & RUN_JSON) {
        int printed = run_report_json(&flow->settings, execution,
                                      flow->options.policy.reports_later ? &flow->later : NULL);

        return printed == EXIT_OK ? status : printed;
    }
    if (job_result_has_failed(result))
        console_say("%s", result->process->failure.msg);
    if (!(flow->options.flags & RUN_QUIET))
        run_report_notes(result);
    if (!flow->trace || !job_timeline(result->job))
        run_report_timeline(result, flow->options.policy.topics);
    if (flow->options.policy.reports_later)
        run_report_later(&flow->later, result);
    return status;
}

static int run_report(const struct run_flow *flow)
{
    const struct execution_result *execution = execution_result(flow->execution);

    for (size_t i = 0; i < execution->warnings.len; i++)
        console_say("%s", execution->warnings.items[i]);
    if (execution->outcome == EXECUTION_RAN)
        return report_attempt(flow, execution);
    if (execution->outcome == EXECUTION_FAILED)
        return run_fail(&flow->options, &execution->failure);
    if (flow->options.flags & RUN_JSON)
        run_report_refusal_json(&flow->settings, execution);
    console_say("not run: %s", execution->reason);
    return EXIT_REFUSED;
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
        flow->execution = execution_start(&flow->execution_options);
        strv_push_all(&flow->settings.warnings,
                      strv_view(&execution_result(flow->execution)->problems));
        flow->flush = loop_timer_new(flow->loop, on_flush, flow);
        loop_timer_start(flow->flush, FLUSH_NS);
        execution_begin(flow->execution);
        status = loop_run(flow->loop, &flow->is_done, &err);
    }
    console_set_raw(false);
    on_started(flow); /* when it was never started, there is still to warn of what is known */
    if (status) {
        run_audit_failure(&flow->audit, err.msg);
        return run_fail(&flow->options, &err);
    }
    status = run_report(flow);
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
    flow->trace = fopen(path, "we");
    if (!flow->trace)
        return err_sys(err, "opening %s", path);
    setvbuf(flow->trace, NULL, _IOLBF, 0);
    return 0;
}

static int run_main(char **argv)
{
    AUTO(run_flow_done)
    struct run_flow flow = {.options = {.policy = {.is_recorded = true},
                                        .kill_after_ns = JOB_RUN_KILL_AFTER_NS,
                                        .max_output = OUTPUT_MEMORY_DEFAULT}};
    struct run_options *options = &flow.options;
    struct err err;
    char **command;
    int status;

    if (!command_parse(&command_run, argv, options, &command, &status))
        return status;
    if (options->approval_hook && strchr(options->approval_hook, '/'))
        options->policy.guarded = options->approval_hook;
    if (!*command) {
        err_set(&err, ERR_INVALID, "there is no command to run: cordon run [OPTION]... -- COMMAND");
        return run_fail(options, &err);
    }
    /* The end of a reader must not be ours before what is on the host for the run is taken away. */
    signal(SIGPIPE, SIG_IGN);
    if (settings_init(&flow.settings, &options->policy, &err))
        return run_fail(options, &err);
    if (options->approval_hook && !flow.settings.approval_from) {
        err_set(&err, ERR_INVALID, "--approval-hook needs --ask-for-approval POLICY");
        return run_fail(options, &err);
    }
    if (options->trace_to && open_trace(&flow, &err))
        return run_fail(options, &err);
    if (!(options->flags & RUN_NO_AUDIT))
        run_audit_init(&flow.audit, &flow.settings);
    if (run_patch_init(&flow.patch, command, flow.settings.workspace->dir, &err))
        return run_fail(options, &err);
    if (flow.patch.cwd)
        run_audit_patch_begin(&flow.audit, flow.patch.cwd, flow.patch.call.text_len);
    else
        run_audit_begin(&flow.audit, &flow.settings, command);
    run_audit_flush(&flow.audit, begin_wait_ns); /* who kills us cannot hide that it began */
    return run_execution(&flow, command);
}

const struct command command_run = {
    .name = "run",
    .summary = "run a command in a sandbox",
    .usage = "[OPTION]... [--] COMMAND [ARGUMENT]...",
    .about = "Runs COMMAND in a sandbox. Unless something else is said it may read every file that "
             "you can read, write below the current directory and in /tmp and $TMPDIR, and reach "
             "nothing but a localhost of its own; protected names (--protect) stay "
             "read-only. What it leaves running is ended with it.\n"
             "\n"
             "The exit status is that of COMMAND; 124 when it ran out of time, 125 when Cordon "
             "failed or was called wrongly, 126 when COMMAND cannot be executed, 127 when it is "
             "not found, 128+N when signal N ended it.\n",
    .examples = "  cordon run -- make test\n"
                "  cordon run --timeout 5m --max-memory 2G -- pytest -q\n"
                "  cordon run --network enabled --writable ~/.npm -- npm install\n"
                "  cordon run --writable .git -- git commit -am 'a commit'\n"
                "  cordon run --deny '**/.env' --deny ~/.ssh -- ./agent-step\n"
                "  cordon run -C build --env CC=clang -- cmake ..\n"
                "  cordon run --json -- ls /root | jq .denials\n",
    .page = "cordon-run",
    .groups = run_option_groups,
    .run = run_main,
};
