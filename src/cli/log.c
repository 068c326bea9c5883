/* `cordon log`: what was run, asked, refused. The work is done by a program of its own, cordon-log,
 * because it needs SQLite, and `cordon run` is not to load a database (docs/decisions/0002-*). Here
 * are its face and the way to it. */
#include "cli/command.h"
#include "cli/console.h"
#include "cli/log_options.h"

#include "base/program.h"

#include <stddef.h>

static int log_run(char **argv)
{
    struct log_options options = {0};
    struct err err;
    char **rest;
    int status;

    if (!command_parse(&command_log, argv, &options, &rest, &status))
        return status;
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
        "when a record was changed or taken away. The log is in $CORDON_HOME (~/.config/cordon): "
        "the newest records in audit.tail, the others in the SQLite database audit.db. It keeps 64 "
        "MiB and 90 days.\n",
    .examples = "  cordon log -n 20\n"
                "  cordon log --since 1d --denied\n"
                "  cordon log --json | jq -r 'select(.event == \"begin\") | .body.argv[0]'\n"
                "  cordon log verify\n",
    .page = "cordon-log",
    .groups = log_option_groups,
    .run = log_run,
};
