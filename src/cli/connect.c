/* `cordon --connect URL COMMAND`, also written `cordon connect COMMAND`: commands at an exec
 * server. The work is done by a program of its own, cordon-client, because `cordon run` is not to
 * load what speaks WebSocket (docs/decisions/0002-*). Here are its face and the way to it.
 *
 * The variable CORDON_CONNECT only counts behind `connect`: no variable in somebody's environment
 * can make a plain `cordon run` happen on another machine. */
#include "cli/connect_options.h"

#include "base/auto.h"
#include "base/program.h"
#include "cli/console.h"
#include "cli/help.h"

#include <stddef.h>

bool connect_parse(char **argv, struct connect_options *options, char ***ret_rest, int *ret_status)
{
    struct options_rest rest;
    struct err err;

    *ret_status = EXIT_FAILED;
    if (options_parse(connect_server_groups, argv + 1, options, &rest, &err)) {
        console_say("%s (\"cordon help connect\" lists all)", err.msg);
        return false;
    }
    if (rest.wants_help) {
        *ret_status = help_print_command(&command_connect);
        return false;
    }
    if (!*rest.argv || !connect_find_command(*rest.argv)) {
        console_say("a server has the commands run, ps, attach, logs, kill and cp%s%s%s "
                    "(\"cordon help connect\" explains them)",
                    *rest.argv ? ", but no \"" : "", *rest.argv ? *rest.argv : "",
                    *rest.argv ? "\"" : "");
        return false;
    }
    *ret_rest = rest.argv;
    return true;
}

static int connect_exec(char **argv)
{
    AUTO(connect_options_done) struct connect_options options;
    struct err err;
    char **rest;
    int status;

    connect_options_init(&options);
    if (!connect_parse(argv, &options, &rest, &status))
        return status;
    program_exec("cordon-client", argv, &err);
    return console_fail(&err);
}

const struct command command_connect = {
    .name = "connect",
    .summary = "run and watch commands at an exec server",
    .usage = "[--connect URL] [--auth-token-file FILE] COMMAND [OPTION]... [ARGUMENT]...",
    .about =
        "Does something at an exec server, as \"cordon serve\" is one: also written cordon "
        "--connect URL COMMAND.\n"
        "\n"
        "  run [OPTION]... -- COMMAND ...    runs a command there\n"
        "  ps [--json]                       lists what runs there\n"
        "  attach [OPTION]... ID             your terminal, on a process there\n"
        "  logs [-f] [--from OFFSET] ID      what a process there wrote\n"
        "  kill [-s SIGNAL] ID               ends one\n"
        "  cp FILE remote:FILE               copies a file or folder there; the other way round, "
        "from there\n"
        "\n"
        "An ID is PROCESS or SESSION/PROCESS, as ps lists them. Of a server that is none of "
        "Cordon's, run, logs, kill and cp work; it lists no processes and lets nobody attach.\n",
    .examples = "  cordon --connect ws://127.0.0.1:7777 ps\n"
                "  export CORDON_CONNECT=unix:$XDG_RUNTIME_DIR/cordon.sock\n"
                "  cordon connect attach --read-only 42\n"
                "  cordon connect ps --help\n",
    .page = "cordon-connect",
    .groups = connect_all_groups,
    .run = connect_exec,
};
