/* `cordon run`: one command to its end, and what is to be said about it.
 *
 *     stdout, stderr   the command's own, live; with --json one JSON value at the end instead
 *     stderr           lines of ours, "cordon: ...", unless --quiet
 *
 * The command never gets a descriptor of the caller's: pipes or a terminal of its own stand
 * between, and bytes are passed on. The exit status is the command's (job/oneshot.h). */
#include "cli/command.h"
#include "cli/console.h"
#include "cli/run_audit.h"
#include "cli/run_flow.h"
#include "cli/run_options.h"
#include "cli/run_report.h"

#include "base/auto.h"
#include "policy/protect.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* --- which streams --- */

/* A terminal that we may read from and change: a job in the background would be stopped for it. */
static bool is_own_terminal(int fd)
{
    return isatty(fd) && tcgetpgrp(fd) == getpgrp();
}

static bool is_null_device(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

/* All three, because on a terminal of its own stdout and stderr become one stream, and stdin is no
 * longer just bytes: neither must happen to a file or a pipe that somebody put there. */
static bool wants_terminal(const struct run_options *options)
{
    if (options->terminal != RUN_TERMINAL_AUTO)
        return options->terminal == RUN_TERMINAL_YES;
    return !(options->flags & (RUN_JSON | RUN_NO_STDIN)) && isatty(STDOUT_FILENO) &&
           isatty(STDERR_FILENO) && is_own_terminal(STDIN_FILENO);
}

static bool wants_input(const struct run_options *options)
{
    if ((options->flags & RUN_NO_STDIN) || is_null_device(STDIN_FILENO))
        return false;
    return !isatty(STDIN_FILENO) || is_own_terminal(STDIN_FILENO);
}

static void choose_streams(const struct run_options *options, struct oneshot_options *job)
{
    if (!(options->flags & RUN_JSON)) {
        job->relay[STREAM_STDOUT] = STDOUT_FILENO;
        job->relay[STREAM_STDERR] = STDERR_FILENO;
    }
    job->stdio = wants_terminal(options) ? ONESHOT_TTY : ONESHOT_PIPES;
    job->input = wants_input(options) ? ONESHOT_INPUT_FD : ONESHOT_INPUT_NULL;
    job->input_fd = STDIN_FILENO;
    if (job->stdio == ONESHOT_TTY && job->input == ONESHOT_INPUT_FD &&
        !(options->flags & RUN_JSON) && is_own_terminal(STDIN_FILENO))
        job->terminal_fd = STDIN_FILENO;
}

/* --- the command --- */

static void fill_job(const struct run_options *options, struct oneshot_options *job)
{
    oneshot_defaults(job);
    job->timeout_ns = options->timeout_ns;
    job->kill_after_ns = options->kill_after_ns;
    job->max_output = options->max_output;
    job->limits = options->limits;
    job->signals = ONESHOT_SIGNALS_HANDLE;
    choose_streams(options, job);
}

/* Output that could not be written is a failure of ours, unless its reader just went away. */
static int exit_status(const struct oneshot_result *result)
{
    int status = oneshot_exit_code(result);

    for (int i = 0; i < STREAM_COUNT; i++) {
        int error = result->relay_error[i];

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

static int report_attempt(const struct run_flow *flow, const struct execution_result *execution)
{
    const struct oneshot_result *result = &execution->attempts[execution->attempts_len - 1].result;
    int status = exit_status(result);

    run_patch_report(&flow->patch, result);
    if (flow->options->flags & RUN_JSON) {
        int printed = run_report_json(run_flow_settings(flow), execution);

        return printed == EXIT_OK ? status : printed;
    }
    if (result->failed)
        console_say("%s", result->failure.msg);
    if (!(flow->options->flags & RUN_QUIET))
        run_report_notes(result);
    return status;
}

/* It was never run. */
static int report_refusal(const struct run_flow *flow, const struct execution_result *execution)
{
    if (flow->options->flags & RUN_JSON)
        run_report_refusal_json(run_flow_settings(flow), execution);
    console_say("not run: %s", execution->reason);
    return EXIT_REFUSED;
}

static int run_report(const struct run_flow *flow)
{
    const struct execution_result *execution = execution_result(flow->execution);

    for (size_t i = 0; i < execution->warnings.len; i++)
        console_say("%s", execution->warnings.items[i]);
    switch (execution->outcome) {
    case EXECUTION_RAN:
        return report_attempt(flow, execution);
    case EXECUTION_FORBIDDEN:
    case EXECUTION_REJECTED:
        return report_refusal(flow, execution);
    case EXECUTION_FAILED:
        break;
    }
    return run_fail(flow->options, &execution->failure);
}

static int run_flow(struct run_flow *flow, char **argv)
{
    struct err err;
    int status;

    fill_job(flow->options, &flow->job);
    console_set_raw(flow->job.terminal_fd >= 0);
    status = run_flow_run(flow, argv, &err);
    console_set_raw(false);
    run_flow_warn(flow);
    if (status) {
        run_audit_failure(flow->audit, err.msg);
        return run_fail(flow->options, &err);
    }
    status = run_report(flow);
    run_audit_result(flow->audit, execution_result(flow->execution));
    return status;
}

static int run_with(const struct run_options *options, char **argv)
{
    AUTO(run_audit_done) struct run_audit audit = {0};
    AUTO(run_flow_done) struct run_flow flow = {.options = options, .audit = &audit};
    struct err err;

    /* The end of a reader must not be ours before what is on the host for the run is taken away. */
    signal(SIGPIPE, SIG_IGN);
    if (settings_init(&flow.settings, &options->policy, &err))
        return run_fail(options, &err);
    if (options->approval_hook && !flow.settings.approval_from) {
        err_set(&err, ERR_INVALID, "--approval-hook needs --ask-for-approval POLICY");
        return run_fail(options, &err);
    }
    if (!(options->flags & RUN_NO_AUDIT))
        run_audit_init(&audit, &flow.settings);
    if (run_patch_init(&flow.patch, argv, flow.settings.folder, &err))
        return run_fail(options, &err);
    if (run_patch_is_one(&flow.patch))
        run_audit_patch_begin(&audit, flow.patch.cwd, flow.patch.call.text_len);
    else
        run_audit_begin(&audit, &flow.settings, argv);
    return run_flow(&flow, argv);
}

static int run_main(char **argv)
{
    AUTO(run_options_done) struct run_options options;
    struct err err;
    char **command;
    int status;

    run_options_init(&options);
    if (!command_parse(&command_run, argv, &options, &command, &status))
        return status;
    if (*command)
        return run_with(&options, command);
    err_set(&err, ERR_INVALID, "there is no command to run: cordon run [OPTION]... -- COMMAND");
    return run_fail(&options, &err);
}

const struct command command_run = {
    .name = "run",
    .summary = "run a command in a sandbox",
    .usage = "[OPTION]... [--] COMMAND [ARGUMENT]...",
    .about = "Runs COMMAND in a sandbox. Unless something else is said it may read every file that "
             "you can read, write below the current folder and in /tmp and $TMPDIR, and reach "
             "nothing but a localhost of its own; protected names (" PROTECT_NAMES_TEXT ") stay "
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
