/* Codex's helper program, by its flags:
 *
 *     codex-linux-sandbox --sandbox-policy-cwd DIR --command-cwd DIR --permission-profile JSON
 *                         -- COMMAND [ARGUMENT]...
 *
 * The caller is a program that made the descriptors 0, 1 and 2 for the command, so pipes, terminals
 * and devices are passed through as they are, and the whole environment, too. What differs from
 * Codex (docs/compatibility.md): files and sockets are relayed; wrong flags are exit status 2 and
 * never a panic; flags of its inner stages do not exist; there is always a /proc of its own where
 * that can be had, and Landlock on top of namespaces instead of in place of them, so --no-proc and
 * --use-legacy-landlock change nothing. */
#include "cli/command.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "cli/config_file.h"
#include "cli/console.h"
#include "cli/options.h"
#include "job/job_run.h"
#include "policy/environment.h"
#include "policy/profile_json.h"
#include "workspace/workspace.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HELPER_EXIT_FAILED = 1, HELPER_EXIT_USAGE = 2 };

/* Codex gives a command 50 ms; a caller that ends us by SIGTERM follows with SIGKILL when it wants to. */
#define HELPER_KILL_AFTER_NS UINT64_C(3600000000000)

struct helper {
    const char *policy_cwd;
    const char *command_cwd;
    const char *profile_text;
    bool ignored; /* flags that change nothing */
    struct profile profile;
    struct config_file file; /* only where it is, and the home directory */
    struct workspaces *workspaces;
    struct workspace *workspace;
};

/* --- flags --- */

static int set_path(const struct option *option, void *member, const char *value, struct err *err)
{
    if (value[0] != '/')
        return err_set(err, ERR_INVALID, "\"%s\" is not an absolute path", value);
    *(const char **)member = value;
    return 0;
}

static int refuse_managed_network(const struct option *option, void *member, const char *value,
                                  struct err *err)
{
    return err_set(err, ERR_UNSUPPORTED,
                   "the proxy of who starts this cannot be led to; Cordon has its own, by a "
                   "profile whose network is proxied, with its rules in network_policy");
}

static const struct option helper_options[] = {
    {.name = "sandbox-policy-cwd",
     .value = "DIR",
     .set = set_path,
     .offset = offsetof(struct helper, policy_cwd),
     .help = "The directory that the project roots of the profile mean. Has to be given."},
    {.name = "command-cwd",
     .value = "DIR",
     .set = set_path,
     .offset = offsetof(struct helper, command_cwd),
     .help = "The directory in which the command starts. Default: the current one."},
    {.name = "permission-profile",
     .value = "JSON",
     INTO_TEXT(struct helper, profile_text),
     .help = "What the command may do, in any of the JSON shapes. Has to be given."},
    {.name = "use-legacy-landlock",
     INTO_TRUE(struct helper, ignored),
     .help = "Changes nothing: Landlock is always used, and more with it."},
    {.name = "no-proc",
     INTO_TRUE(struct helper, ignored),
     .help = "Changes nothing: the command gets a /proc of its own where that is possible."},
    {.name = "managed-network", .value = "JSON", .set = refuse_managed_network, .help = "Refused."},
    {.name = NULL},
};

static const struct option_group helper_groups[] = {{"Options", helper_options}, {NULL, NULL}};

static int helper_help(void)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};

    buf_append_str(&text, "Usage: codex-linux-sandbox --sandbox-policy-cwd DIR --command-cwd DIR\n"
                          "           --permission-profile JSON -- COMMAND [ARGUMENT]...\n\n");
    options_print_text("Cordon in the place of Codex's sandbox helper. For people there is "
                       "\"cordon run\".\n",
                       0, &text);
    options_print(helper_groups, false, &text);
    return console_print(&text);
}

static int helper_fail(const struct err *err, int status)
{
    console_fail(err);
    return status;
}

/* --- the command --- */

static void helper_done(struct helper *helper)
{
    workspaces_free(helper->workspaces);
    config_file_done(&helper->file);
    profile_done(&helper->profile);
}

/* The whole environment is the caller's. */
static int make_workspace(struct helper *helper, struct err *err)
{
    const struct environment_policy everything = {.defaults = ENVIRONMENT_DEFAULTS_OFF};
    char *const roots[] = {(char *)helper->policy_cwd, NULL};
    const struct workspace_request request = {
        .dir = helper->command_cwd,
        .roots = roots,
        .profile = &helper->profile,
        .env = &everything,
        .tmpdir = getenv("TMPDIR"),
    };
    struct workspaces_options options = {.dies_with_thread = true};

    if (helper->profile.network == NETWORK_PROXIED &&
        !network_policy_is_given(&helper->profile.network_policy))
        return err_set(
            err, ERR_UNSUPPORTED,
            "the network is proxied, and nothing is said of hosts: the proxy of who starts "
            "this cannot be led to, and Cordon's wants its rules in network_policy");
    if (config_file_place(&helper->file, err))
        return -1;
    options.home = helper->file.home;
    options.own_paths = strv_view(&helper->file.own_paths);
    helper->workspaces = workspaces_new(&options);
    helper->workspace = workspace_make(helper->workspaces, NULL, &request, err);
    return helper->workspace ? workspace_open(helper->workspace, err) : -1;
}

static void on_started(void *data)
{
    const struct workspace *workspace = ((const struct helper *)data)->workspace;

    if (sandbox_is_degraded(workspace->sandbox))
        console_say("the sandbox is weaker than it should be: %s (cordon doctor tells what to do)",
                    sandbox_degradation(workspace->sandbox));
}

/* Ends as the command ended, so that our parent sees the same. */
static int end_like(const struct job_result *result)
{
    if (job_result_has_failed(result)) {
        console_say("%s", result->process->failure.msg);
        if (result->process->stage != LAUNCH_STAGE_EXEC)
            return HELPER_EXIT_FAILED;
        return result->process->failure.sys == ENOENT ? 127 : 126;
    }
    if (!result->process->signal)
        return result->process->code;
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* no core of ours: the command may have left its own */
    signal(result->process->signal, SIG_DFL);
    raise(result->process->signal);
    return 128 + result->process->signal; /* a signal that does not end us */
}

/* A file of the caller's could be changed through its descriptor, whatever it was opened for, and a
 * socket be answered; such are relayed. Pipes, terminals and devices are passed on. */
static bool must_be_relayed(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISSOCK(st.st_mode));
}

static void choose_streams(struct job_run_options *job)
{
    job->stdio = PROCESS_FDS;
    if (!must_be_relayed(STDIN_FILENO) && !must_be_relayed(STDOUT_FILENO) &&
        !must_be_relayed(STDERR_FILENO))
        return;
    job->stdio = PROCESS_PIPES;
    job->input = JOB_RUN_INPUT_FD;
    job->input_fd = STDIN_FILENO;
    job->pump_fds[STREAM_STDOUT] = STDOUT_FILENO;
    job->pump_fds[STREAM_STDERR] = STDERR_FILENO;
}

static int run_sandboxed(struct helper *helper, char **command)
{
    struct job_run_options job;
    struct job_result result;
    struct err err;
    int status;

    if (make_workspace(helper, &err))
        return helper_fail(&err, HELPER_EXIT_FAILED);
    job_run_defaults(&job);
    job.sandbox = helper->workspace->sandbox;
    job.argv = command;
    job.env = strv_view(&helper->workspace->env);
    job.cwd = helper->command_cwd;
    choose_streams(&job);
    job.kill_after_ns = HELPER_KILL_AFTER_NS;
    job.signals = JOB_RUN_SIGNALS_HANDLE;
    job.on_started = on_started;
    job.data = helper;
    if (job_run(&job, &result, &err))
        return helper_fail(&err, HELPER_EXIT_FAILED);
    status = end_like(&result);
    job_result_done(&result);
    return status;
}

/* Nothing is applied, so nothing has to stand between. */
static int run_bare(const struct helper *helper, char **command)
{
    struct err err;

    if (chdir(helper->command_cwd)) {
        err_sys(&err, "entering %s", helper->command_cwd);
        return helper_fail(&err, HELPER_EXIT_FAILED);
    }
    execvp(command[0], command);
    err_sys(&err, "executing %s", command[0]);
    return helper_fail(&err, err.sys == ENOENT ? 127 : 126);
}

int helper_main(char **argv)
{
    AUTO(helper_done) struct helper helper = {0};
    AUTO(strv_done) struct strv ignored = {0};
    struct options_rest rest;
    char current[PATH_MAX];
    struct err err;

    if (options_parse(helper_groups, argv, &helper, &rest, &err))
        return helper_fail(&err, HELPER_EXIT_USAGE);
    if (rest.wants_help)
        return helper_help();
    if (!helper.policy_cwd || !helper.profile_text || !*rest.argv) {
        console_say("%s", !helper.policy_cwd     ? "--sandbox-policy-cwd DIR is missing"
                          : !helper.profile_text ? "--permission-profile JSON is missing"
                                                 : "there is no command: ... -- COMMAND "
                                                   "[ARGUMENT]...");
        return HELPER_EXIT_USAGE;
    }
    if (profile_parse(helper.profile_text, strlen(helper.profile_text), &ignored, &helper.profile,
                      &err)) {
        err_wrap(&err, "invalid permission profile JSON");
        return helper_fail(&err, HELPER_EXIT_USAGE);
    }
    /* what a newer Codex may add to a profile is ignored, and said */
    for (size_t i = 0; i < ignored.len; i++)
        console_say("permission profile: %s is not known here and has no effect", ignored.items[i]);
    if (!helper.command_cwd && !(helper.command_cwd = getcwd(current, sizeof current))) {
        err_sys(&err, "finding the current directory");
        return helper_fail(&err, HELPER_EXIT_FAILED);
    }
    if (helper.profile.kind == PROFILE_DISABLED)
        return run_bare(&helper, rest.argv);
    return run_sandboxed(&helper, rest.argv);
}
