/* `cordon log`: what was run, asked, refused. The work is done by a program of its own, cordon-log,
 * because it needs SQLite, and `cordon run` is not to load a database (docs/decisions/0002-*). Here
 * are its options, which both programs read, its help, and the way to it. */
#include "cli/log.h"

#include "base/clock.h"
#include "base/program.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/console.h"

#include <stddef.h>
#include <string.h>
#include <time.h>

/* --- options --- */

/* A day or a moment, in UTC as the log shows it. */
static bool parse_moment(const char *text, uint64_t *ret_ns)
{
    static const char *const forms[] = {"%Y-%m-%d", "%Y-%m-%dT%H:%MZ", "%Y-%m-%dT%H:%M:%SZ"};

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct tm tm = {0};
        const char *end = strptime(text, forms[i], &tm);
        int day = tm.tm_mday;
        time_t seconds = end && !*end ? timegm(&tm) : -1;

        /* timegm(3) takes the 30th of February for the 1st or 2nd of March */
        if (seconds >= 0 && tm.tm_mday == day) {
            *ret_ns = (uint64_t)seconds * CLOCK_NS_PER_S;
            return true;
        }
    }
    return false;
}

static int set_since(const struct option *option, void *member, const char *value, struct err *err)
{
    struct log_options *options = member;
    uint64_t now = clock_wall_ns();
    struct err ignored;
    uint64_t ago;

    if (parse_moment(value, &options->since_ns))
        return 0;
    if (units_parse_duration(value, &ago, &ignored))
        return err_set(err, ERR_INVALID,
                       "\"%s\" is neither a time ago (30m, 2h, 7d) nor a time in UTC (2026-11-20, "
                       "2026-11-20T10:30Z)",
                       value);
    options->since_ns = ago < now ? now - ago : 0;
    return 0;
}

static const struct option log_options[] = {
    {.name = "since",
     .value = "TIME",
     .set = set_since,
     .help = "Only what happened since: so long ago (30m, 2h, 7d), or a day or time in UTC "
             "(2026-11-20, 2026-11-20T10:30Z)."},
    {.name = "session",
     .value = "ID",
     INTO_TEXT(struct log_options, session),
     .help = "Only the run or session whose id begins so."},
    {.name = "denied",
     INTO_FLAG(struct log_options, flags, LOG_DENIED),
     .help = "Only what was refused: by the sandbox, a rule, or a person."},
    {.name = "lines",
     .letter = 'n',
     .value = "N",
     INTO_COUNT(struct log_options, count),
     .min = 1,
     .brief = "Only the last N records",
     .help = "Only the last N records (of those that the other options leave)."},
    {.name = "follow",
     .letter = 'f',
     INTO_FLAG(struct log_options, flags, LOG_FOLLOW),
     .brief = "Goes on with what comes, until Ctrl-C",
     .help = "Shows the last records (10, unless another option says which), and then those that "
             "come, until Ctrl-C."},
    {.name = "start-anew",
     INTO_FLAG(struct log_options, flags, LOG_ANEW),
     .brief = "Begins a new log, and keeps the broken one",
     .help = "Begins a new log, whose first record says what was wrong with the old one and where "
             "its files are kept, beside the new ones."},
    {.name = "json",
     .letter = 'j',
     INTO_FLAG(struct log_options, flags, LOG_JSON),
     .help = "One JSON object per line."},
    {.name = NULL},
};

const struct option_group log_option_groups[] = {{"Options", log_options}, {NULL, NULL}};

/* --- the command --- */

static int log_run(char **argv)
{
    struct log_options options = {0};
    struct err err;
    char **rest;
    int status;

    if (!command_parse(&command_log, argv, &options, &rest, &status))
        return status;
    if (options.flags & LOG_ANEW && (options.flags & LOG_FOLLOW || *rest))
        return console_failf("--start-anew is all that is done then; leave the rest out");
    program_exec("cordon-log", argv, &err);
    return console_fail(&err);
}

const struct command command_log = {
    .name = "log",
    .summary = "show what was run, asked and refused",
    .usage = "[OPTION]... [verify]",
    .about =
        "Shows the audit log of this user: every command that Cordon ran, by whichever way, with "
        "what was asked, answered and refused, and how it ended. Output is only counted, and "
        "environment values and what looks like a secret are never written.\n"
        "\n"
        "The records are chained by hash. \"cordon log verify\" checks the chain and exits with 1 "
        "when a record was changed or taken away; --start-anew begins a new log then, and keeps "
        "the old one. On a terminal times are local, elsewhere UTC. The log is in $CORDON_HOME "
        "(~/.config/cordon): "
        "the newest records in audit.tail, the others in the SQLite database audit.db. It keeps 64 "
        "MiB and 90 days.\n",
    .examples = "  cordon log -n 20\n"
                "  cordon log --since 1d --denied\n"
                "  cordon log --json | jq -r 'select(.event == \"begin\") | .body.argv[0]'\n"
                "  cordon log --follow --denied\n"
                "  cordon log verify\n",
    .page = "cordon-log",
    .groups = log_option_groups,
    .run = log_run,
};
