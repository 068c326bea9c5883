/* See run_options.h. */
#include "cli/run_options.h"

#include "job/job_run.h"
#include "output/output.h"
#include "timeline/timeline.h"

void run_options_init(struct run_options *options)
{
    *options = (struct run_options){.policy = {.is_recorded = true},
                                    .kill_after_ns = JOB_RUN_KILL_AFTER_NS,
                                    .max_output = OUTPUT_MEMORY_DEFAULT};
}

void run_options_done(struct run_options *options)
{
    policy_options_done(&options->policy);
    strv_done(&options->layer.direct);
}

/* At a server, and at a client of one, what is retained has to fit into memory. */
#define MAX_OUTPUT_LIMIT (UINT64_C(1) << 30)

static const char *const stdin_words[] = {"pipe", "null", NULL};

const struct option run_approval_options[] = {
    {.name = "ask-for-approval",
     .letter = 'a',
     .value = "POLICY",
     .words = policy_approval_words,
     .set = policy_set_approval,
     .offset = offsetof(struct run_options, policy),
     .brief = "Who is asked: untrusted, on-request, never",
     .help = "Who is asked before the command runs, at the terminal: untrusted asks about "
             "everything that is not known to be harmless; on-request (or on-failure, granular) "
             "about what rules want asked; never refuses that. After a denial you may be "
             "asked to run it once more with what it lacked. granular takes its switches from the "
             "config file. "
             "Default: approval_policy of the config file, or on-request with --watch ask; else no "
             "question is asked, and of the rules only those that forbid count."},
    {.name = "yes-means-unsandboxed",
     INTO_TRUE(struct run_options, policy.yes_means_unsandboxed),
     .brief = "As in Codex: a yes also covers no sandbox",
     .help = "As in Codex: under untrusted and granular a yes to the first question also lets the "
             "command run once more without a sandbox when it was refused something, and a "
             "question after a denial offers that. The command can bring this about."},
    {.name = "approval-hook",
     .value = "PROGRAM",
     INTO_TEXT(struct run_options, approval_hook),
     .brief = "Is asked first, by JSON on stdin",
     .help = "Is asked first: it gets the question as JSON on stdin and prints {\"decision\": "
             "\"approved\"}, \"denied\" or \"ask\" (then the terminal is asked)."},
    {.name = "approval-timeout",
     .value = "TIME",
     INTO_DURATION(struct run_options, approval_timeout_ns),
     .brief = "No answer after TIME is a no",
     .help = "No answer after TIME is a no. Default: none; a hook has 60s."},
    {.name = NULL},
};

static int set_limit(const struct option *option, void *member, const char *value, struct err *err)
{
    const enum resource_limit limit = (enum resource_limit)option->number;
    struct resource_limits *limits = member;

    return resource_limit_parse(limit, value, &limits->of[limit], err);
}

#define INTO_LIMIT(which)                                                                          \
    .set = set_limit, .offset = offsetof(struct run_options, limits), .number = (which)

const struct option run_limit_options[] = {
    {.name = "timeout",
     .letter = 't',
     .value = "TIME",
     INTO_DURATION(struct run_options, timeout_ns),
     .brief = "Ends the command after TIME (500ms, 10s, 5m)",
     .help =
         "Ends the command after TIME (500ms, 10s, 5m, 1h; a plain number is seconds) and exits "
         "with 124."},
    {.name = "kill-after",
     .value = "TIME",
     INTO_DURATION(struct run_options, kill_after_ns),
     .brief = "What it has between SIGTERM and SIGKILL",
     .help = "How long the command has after SIGTERM before it gets SIGKILL, with everything that "
             "it started. Default: 2s."},
    {.name = "max-memory",
     .value = "SIZE",
     INTO_LIMIT(LIMIT_MEMORY),
     .brief = "Of all its processes together (512M, 2G)",
     .help = "Memory (512M, 2G) of all its processes together, by a cgroup, which is made or asked "
             "of systemd; where neither works, private memory of each process, and that is said. "
             "Here and below 0 and none mean no limit. Default: none."},
    {.name = "max-cpu-time",
     .value = "TIME",
     INTO_LIMIT(LIMIT_CPU_TIME),
     .brief = "CPU time of each process",
     .help = "CPU time of each process, rounded up to seconds."},
    {.name = "max-pids",
     .value = "N",
     INTO_LIMIT(LIMIT_PIDS),
     .help = "Processes and threads of it. Default: 4096; as root none."},
    {.name = "max-file-size",
     .value = "SIZE",
     INTO_LIMIT(LIMIT_FILE_SIZE),
     .help = "Size of a file that it writes. Default: 16G."},
    {.name = "max-files",
     .value = "N",
     INTO_LIMIT(LIMIT_FILES),
     .help = "Open descriptors of each process; never more than you may have. Default: 65536."},
    {.name = "max-address-space",
     .value = "SIZE",
     INTO_LIMIT(LIMIT_ADDRESS_SPACE),
     .brief = "Address space of each process",
     .help =
         "Address space of each process, also what it only reserves, as Java and node do by the "
         "gigabyte. Default: none."},
    {.name = "max-output",
     .value = "SIZE",
     INTO_SIZE(struct run_options, max_output),
     .max = MAX_OUTPUT_LIMIT,
     .wrong = "at most 1G can be kept",
     .help = "Bytes of each stream that are kept for --json: half of it the beginning, half the "
             "end. Default: 1M; of more, SIZE of the beginning is kept on disk ($TMPDIR or /tmp), "
             "and 512K of the end. What is shown live is never cut."},
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

const struct option run_trace_options[] = {
    {.name = "trace",
     .value = "WHAT",
     .may_lack = true,
     .set = set_trace,
     .offset = offsetof(struct run_options, policy.topics),
     .brief = "Tells what it did: files, network, exec",
     .help =
         "Tells at the end what the command did, in its order, with what it was refused. WHAT is a "
         "list of files (opened for writing, made, changed, removed, renamed, linked), network "
         "(connected, bound) and exec (the programs that ran, also as a tree); without it all. "
         "With --json it is \"events\" and \"execs\"."},
    {.name = "trace-to",
     .value = "FILE",
     INTO_NOT_EMPTY(struct run_options, trace_to),
     .brief = "Writes that to FILE while it runs, as JSON lines",
     .help =
         "Writes the events to FILE while the command runs, one JSON object a line, and nothing "
         "of it to stderr. FILE is made, or emptied."},
    {.name = "report",
     INTO_TRUE(struct run_options, policy.reports_later),
     .brief = "Names what it wrote that others run later: Makefile, hooks, ...",
     .help = "Tells at the end which files the command made or changed that other programs run or "
             "obey by themselves, outside of the sandbox: Makefile, package.json, CI files, "
             "conftest.py, AGENTS.md, ... With --json it is \"runs_later\"."},
    {.name = NULL},
};

const struct option run_stream_options[] = {
    {.name = "tty",
     INTO_CHOICE(struct run_options, terminal, RUN_TERMINAL_YES),
     .brief = "Gives it a terminal of its own",
     .help =
         "Gives the command a terminal of its own (never yours). The default when stdin, stdout "
         "and stderr are all a terminal."},
    {.name = "no-tty",
     INTO_CHOICE(struct run_options, terminal, RUN_TERMINAL_NO),
     .brief = "Gives it pipes",
     .help = "Gives it pipes, also on a terminal."},
    {.name = "stdin",
     .value = "KIND",
     .words = stdin_words,
     INTO_WORD(struct run_options, input, RUN_INPUT_PIPE),
     .brief = "pipe (the default) or null",
     .help = "pipe (the default): what comes in here is passed on, through a pipe. null: nothing; "
             "of use in a loop that reads stdin itself."},
    {.name = "json",
     .letter = 'j',
     INTO_FLAG(struct run_options, flags, RUN_JSON),
     .brief = "Prints one JSON value",
     .help = "Shows nothing live; prints one JSON value at the end: how it ended, its output, its "
             "usage, what was refused, which layers held."},
    {.name = "quiet",
     .letter = 'q',
     INTO_FLAG(struct run_options, flags, RUN_QUIET),
     .brief = "Says nothing about the sandbox",
     .help = "Says nothing about the sandbox on stderr; errors of Cordon itself are still said."},
    {.name = "no-audit",
     INTO_FLAG(struct run_options, flags, RUN_NO_AUDIT),
     .brief = "Leaves it out of the audit log",
     .help = "Leaves this run out of the audit log (cordon log)."},
    {.name = NULL},
};
