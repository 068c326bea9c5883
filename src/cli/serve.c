/* `cordon serve`: the exec server. The work is done by a program of its own, cordon-server, because
 * `cordon run` is not to load what a server needs (docs/decisions/0002-*). Here are its face and
 * the way to it. */
#include "base/program.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/serve_options.h"

#include <stddef.h>

static int serve_run(char **argv)
{
    struct serve_options options;
    struct err err;
    char **rest;
    int status;

    serve_options_init(&options);
    if (!command_parse(&command_serve, argv, &options, &rest, &status) ||
        !command_has_no_arguments(&command_serve, rest, &status))
        return status;
    program_exec("cordon-server", argv, &err);
    return console_fail(&err);
}

const struct command command_serve = {
    .name = "serve",
    .summary = "run commands for programs, over a socket",
    .usage = "[OPTION]...",
    .about =
        "Serves the exec-server protocol: JSON-RPC over WebSocket, a Unix socket or standard input "
        "and output. Clients start processes, each in a sandbox of its own, read and write them, "
        "and handle files. An unmodified Codex works with it; what is different is in "
        "docs/compatibility.md, and the protocol in docs/protocol.md.\n"
        "\n"
        "Whoever may connect may run commands as this user. That are processes of this user and of "
        "root, but no commands of Cordon's; over WebSocket also who has the token of --ws-auth. "
        "Tokens are read from files and never appear in arguments, logs or a command's "
        "environment.\n"
        "\n"
        "SIGTERM ends the server: commands get SIGTERM, clients hear how they ended. SIGHUP reads "
        "the configuration and the files with tokens or secrets again. When the server is killed, "
        "so is everything that it started.\n",
    .examples = "  cordon serve\n"
                "  cordon serve --listen unix:$XDG_RUNTIME_DIR/cordon.sock\n"
                "  CODEX_EXEC_SERVER_URL=ws://127.0.0.1:7777 codex exec ...\n",
    .page = "cordon-serve",
    .groups = serve_option_groups,
    .run = serve_run,
};
