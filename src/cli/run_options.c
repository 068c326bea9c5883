/* See run_options.h. */
#include "cli/run_options.h"

#include "base/str.h"
#include "base/units.h"
#include "job/oneshot.h"
#include "output/capture.h"

#include <string.h>

void run_options_init(struct run_options *options)
{
    *options = (struct run_options){
        .kill_after_ns = ONESHOT_KILL_AFTER_NS,
        .max_output = CAPTURE_DEFAULT_MAX,
    };
}

void run_options_done(struct run_options *options)
{
    policy_options_done(&options->policy);
}

static int set_flag(void *data, enum run_flag flag)
{
    ((struct run_options *)data)->flags |= flag;
    return 0;
}

static int set_json(void *data, const char *value, struct err *err)
{
    return set_flag(data, RUN_JSON);
}

static int set_quiet(void *data, const char *value, struct err *err)
{
    return set_flag(data, RUN_QUIET);
}

static int set_no_audit(void *data, const char *value, struct err *err)
{
    return set_flag(data, RUN_NO_AUDIT);
}

static int set_stdin(void *data, const char *value, struct err *err)
{
    struct run_options *options = data;

    options->flags &= ~(unsigned)RUN_NO_STDIN;
    return str_eq(value, "null") ? set_flag(data, RUN_NO_STDIN) : 0;
}

static int set_tty(void *data, const char *value, struct err *err)
{
    ((struct run_options *)data)->terminal = RUN_TERMINAL_YES;
    return 0;
}

static int set_no_tty(void *data, const char *value, struct err *err)
{
    ((struct run_options *)data)->terminal = RUN_TERMINAL_NO;
    return 0;
}

static int set_timeout(void *data, const char *value, struct err *err)
{
    return units_parse_duration(value, &((struct run_options *)data)->timeout_ns, err);
}

static int set_kill_after(void *data, const char *value, struct err *err)
{
    return units_parse_duration(value, &((struct run_options *)data)->kill_after_ns, err);
}

/* What is retained has to fit into memory several times, for the JSON text of it. */
#define MAX_OUTPUT_LIMIT (UINT64_C(1) << 30)

static int set_max_output(void *data, const char *value, struct err *err)
{
    uint64_t size;

    if (units_parse_size(value, &size, err))
        return -1;
    if (size > MAX_OUTPUT_LIMIT)
        return err_set(err, ERR_LIMIT, "at most 1G can be kept");
    ((struct run_options *)data)->max_output = (size_t)size;
    return 0;
}

static int set_max_memory(void *data, const char *value, struct err *err)
{
    return units_parse_size(value, &((struct run_options *)data)->limits.memory, err);
}

static int set_max_file_size(void *data, const char *value, struct err *err)
{
    return units_parse_size(value, &((struct run_options *)data)->limits.file_size, err);
}

static int set_max_cpu_time(void *data, const char *value, struct err *err)
{
    return units_parse_duration(value, &((struct run_options *)data)->limits.cpu_time_ns, err);
}

static int set_max_pids(void *data, const char *value, struct err *err)
{
    return units_parse_count(value, &((struct run_options *)data)->limits.pids, err);
}

static int set_approval_hook(void *data, const char *value, struct err *err)
{
    struct run_options *options = data;

    options->approval_hook = value;
    options->policy.guarded = strchr(value, '/') ? value : NULL;
    return 0;
}

static int set_approval_timeout(void *data, const char *value, struct err *err)
{
    return units_parse_duration(value, &((struct run_options *)data)->approval_timeout_ns, err);
}

static const char *const stdin_words[] = {"pipe", "null", NULL};

static const struct option approval_options[] = {
    {.name = "ask-for-approval",
     .letter = 'a',
     .value = "POLICY",
     .words = policy_approval_words,
     .set = policy_set_approval,
     .help = "Who is asked before the command runs, at the terminal: untrusted asks about "
             "everything that is not known to be harmless; on-request (or on-failure, granular) "
             "about what rules want asked; never refuses that. After a denial the command may be "
             "run once more with what it lacked. granular takes its switches from the config file. "
             "Default: approval_policy of the config file; without one nobody is asked, and of "
             "the rules only those that forbid count."},
    {.name = "approval-hook",
     .value = "PROGRAM",
     .set = set_approval_hook,
     .help = "Is asked first: it gets the question as JSON on stdin and prints {\"decision\": "
             "\"approved\"}, \"denied\" or \"ask\" (then the terminal is asked)."},
    {.name = "approval-timeout",
     .value = "TIME",
     .set = set_approval_timeout,
     .help = "No answer after TIME is a no. Default: none; a hook has 60s."},
    {.name = NULL},
};

static const struct option limit_options[] = {
    {.name = "timeout",
     .letter = 't',
     .value = "TIME",
     .set = set_timeout,
     .help =
         "Ends the command after TIME (500ms, 10s, 5m, 1h; a plain number is seconds) and exits "
         "with 124."},
    {.name = "kill-after",
     .value = "TIME",
     .set = set_kill_after,
     .help = "How long the command has after SIGTERM before it gets SIGKILL, with everything that "
             "it started. Default: 2s."},
    {.name = "max-memory",
     .value = "SIZE",
     .set = set_max_memory,
     .help = "Memory (512M, 2G): of all its processes with a cgroup, of each without."},
    {.name = "max-cpu-time",
     .value = "TIME",
     .set = set_max_cpu_time,
     .help = "CPU time of each process, rounded up to seconds."},
    {.name = "max-pids",
     .value = "N",
     .set = set_max_pids,
     .help = "Processes and threads: its own with a cgroup; all of yours without, and none at all "
             "are counted for root then."},
    {.name = "max-file-size",
     .value = "SIZE",
     .set = set_max_file_size,
     .help = "Size of a file that it writes."},
    {.name = "max-output",
     .value = "SIZE",
     .set = set_max_output,
     .help = "Bytes of each stream that are kept for --json: half of it the beginning, half the "
             "end. Default: 1M. What is shown live is never cut."},
    {.name = NULL},
};

static const struct option stream_options[] = {
    {.name = "tty",
     .set = set_tty,
     .help =
         "Gives the command a terminal of its own (never yours). The default when stdin, stdout "
         "and stderr are all a terminal."},
    {.name = "no-tty", .set = set_no_tty, .help = "Gives it pipes, also on a terminal."},
    {.name = "stdin",
     .value = "KIND",
     .words = stdin_words,
     .set = set_stdin,
     .help = "pipe (the default): what comes in here is passed on, through a pipe. null: nothing; "
             "of use in a loop that reads stdin itself."},
    {.name = "json",
     .letter = 'j',
     .set = set_json,
     .help = "Shows nothing live; prints one JSON value at the end: how it ended, its output, its "
             "usage, what was refused, which layers held."},
    {.name = "quiet",
     .letter = 'q',
     .set = set_quiet,
     .help = "Says nothing about the sandbox on stderr; errors of Cordon itself are still said."},
    {.name = "no-audit",
     .set = set_no_audit,
     .help = "Leaves this run out of the audit log (cordon log)."},
    {.name = NULL},
};

const struct option_group run_option_groups[] = {
    {"Permissions", policy_permission_options},
    {"Environment", policy_environment_options},
    {"Approval", approval_options},
    {"Limits", limit_options},
    {"Input and output", stream_options},
    {NULL, NULL},
};
