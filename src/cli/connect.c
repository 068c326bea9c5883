/* `cordon --connect URL COMMAND`, also written `cordon connect COMMAND`: commands at an exec
 * server. The work is done by a program of its own, cordon-client, because `cordon run` is not to
 * load what speaks WebSocket (docs/decisions/0002-*). Here are the options, which both programs read
 * (their texts are only kept here; what they mean is found out by cordon-client), the help, and the
 * way to it.
 *
 * The variable CORDON_CONNECT only counts behind `connect`: no variable in the environment can make
 * a plain `cordon run` happen on another machine. */
#include "cli/connect.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/program.h"
#include "base/str.h"
#include "base/units.h"
#include "cli/console.h"

#include <stddef.h>
#include <string.h>

enum { GRACE_S = 10 };

/* --- the tables --- */

static const struct option server_options[] = {
    {.name = "connect",
     .value = "URL",
     INTO_NOT_EMPTY(struct connect_options, url),
     .help = "Where the server is: ws://IP:PORT or unix:PATH. Default: $CORDON_CONNECT, or "
             "$XDG_RUNTIME_DIR/cordon.sock where there is one."},
    {.name = "auth-token-file",
     .value = "FILE",
     INTO_NOT_EMPTY(struct connect_options, token_file),
     .brief = "The file with the server's token",
     .help =
         "The file with the token that the server asks for (capability token or signed "
         "bearer token), which is sent to it; none: nothing is. Default: the file that "
         "$CORDON_TOKEN_FILE names, else, at a loopback address, your own token, which is shown "
         "to be known and not sent; a server that does not know it is not talked to."},
    {.name = NULL},
};

/* Beside those of `cordon run`. */
static const struct option run_options[] = {
    {.name = "detach",
     INTO_FLAG(struct connect_options, flags, CONNECT_DETACHED),
     .brief = "Starts it and prints its id",
     .help = "Starts it without waiting, and prints its id for ps, attach, logs and kill. It gets "
             "no input but what attach writes."},
    {.name = NULL},
};

#define OPTIONS_OF_RUN                                                                             \
    RUN_OPTION_GROUPS(offsetof(struct connect_options, run)),                                      \
    {                                                                                              \
        "At the server", run_options                                                               \
    }

static const struct option ps_options[] = {
    {.name = "json",
     .letter = 'j',
     INTO_FLAG(struct connect_options, flags, CONNECT_JSON),
     .help = "Prints what the server answers, as JSON."},
    {.name = NULL},
};

static const struct option attach_options[] = {
    {.name = "read-only",
     INTO_FLAG(struct connect_options, flags, CONNECT_READ_ONLY),
     .brief = "Only looks on",
     .help = "Only looks on: no key, signal or window size reaches the process."},
    {.name = "from",
     .value = "OFFSET",
     INTO_NOT_EMPTY(struct connect_options, from),
     .help = "Begins with this byte of the output: 4096, 64K, -8K (the last ones; the default), "
             "start, end."},
    {.name = "detach-key",
     .value = "KEYS",
     INTO_NOT_EMPTY(struct connect_options, detach_key),
     .help = "What to press to leave it running: one key, or several with commas between, as in "
             "ctrl-p,ctrl-q; none turns it off. Default: ctrl-\\."},
    {.name = NULL},
};

static const struct option logs_options[] = {
    {.name = "follow",
     .letter = 'f',
     INTO_FLAG(struct connect_options, flags, CONNECT_FOLLOW),
     .help = "Goes on until the process ends."},
    {.name = "from",
     .value = "OFFSET",
     INTO_NOT_EMPTY(struct connect_options, from),
     .help = "Begins with this byte of the output, written as for attach. Default: start."},
    {.name = NULL},
};

static const struct option kill_options[] = {
    {.name = "signal",
     .letter = 's',
     .value = "SIGNAL",
     INTO_NOT_EMPTY(struct connect_options, signal),
     .brief = "TERM (the default), INT or KILL",
     .help = "TERM (the default), INT or KILL; the protocol has no others."},
    {.name = "grace",
     .value = "TIME",
     INTO_DURATION(struct connect_options, grace_ns),
     .help = "How long after TERM KILL follows. Default: 10s."},
    {.name = NULL},
};

static const struct option no_options[] = {{.name = NULL}};

static const struct option_group connect_server_groups[] = {
    {"Server (before the command)", server_options}, {NULL, NULL}};

static const struct option_group connect_all_groups[] = {
    {"Server (before the command)", server_options},
    OPTIONS_OF_RUN,
    {"Of ps", ps_options},
    {"Of attach", attach_options},
    {"Of logs", logs_options},
    {"Of kill", kill_options},
    {NULL, NULL},
};

#define GROUPS(name)                                                                               \
    static const struct option_group name##_groups[] = {{"Options", name##_options}, {NULL, NULL}}

static const struct option_group run_groups[] = {OPTIONS_OF_RUN, {NULL, NULL}};
GROUPS(ps);
GROUPS(attach);
GROUPS(logs);
GROUPS(kill);

static const struct option_group cp_groups[] = {{"Options", no_options}, {NULL, NULL}};

static const struct command connect_run = {
    .name = "connect run",
    .usage = "[OPTION]... [--] COMMAND [ARGUMENT]...",
    .about = "Runs a command at the server: its output and exit status come here, what is typed "
             "here goes there. Ctrl-C interrupts it, the second time ends it. When this program "
             "ends, so does the command, unless --detach is given.\n",
    .examples = "  cordon --connect ws://127.0.0.1:7777 run -- make test\n"
                "  cordon --connect unix:/run/cordon.sock run --tty -- bash\n"
                "  tar -c . | cordon connect run -C /srv/copy -- tar -x\n",
    .page = "cordon-connect",
    .groups = run_groups,
};

static const struct command connect_ps = {
    .name = "connect ps",
    .usage = "[--json]",
    .about = "Lists the processes of all clients of the server. One that ended stays for 80 s.\n",
    .examples = "  cordon --connect ws://127.0.0.1:7777 ps\n",
    .page = "cordon-connect",
    .groups = ps_groups,
};

static const struct command connect_attach = {
    .name = "connect attach",
    .usage = "[OPTION]... ID",
    .about =
        "Connects your terminal to a process that was started elsewhere: first you see what "
        "it wrote last, then what it writes; what you type goes to it, and no other client can "
        "write meanwhile. Ctrl-\\ leaves it running.\n",
    .examples = "  cordon --connect ws://127.0.0.1:7777 attach 3f1c9a60/42\n"
                "  cordon connect attach --read-only --from start 42\n",
    .page = "cordon-connect",
    .groups = attach_groups,
};

static const struct command connect_logs = {
    .name = "connect logs",
    .usage = "[OPTION]... ID",
    .about = "Shows what a process wrote, as far as the server still has it: its stdout on stdout, "
             "its stderr on stderr.\n",
    .examples = "  cordon connect logs -f 42\n"
                "  cordon connect logs --from -64K 42\n",
    .page = "cordon-connect",
    .groups = logs_groups,
};

static const struct command connect_kill = {
    .name = "connect kill",
    .usage = "[OPTION]... ID",
    .about = "Ends a process with all that it started. Exits with 1 when it had ended already.\n",
    .examples = "  cordon connect kill 42\n"
                "  cordon connect kill -s INT 3f1c9a60/42\n",
    .page = "cordon-connect",
    .groups = kill_groups,
};

static const struct command connect_publish = {
    .name = "connect publish",
    .usage = "ID [ADDR:]HOSTPORT:PORT",
    .about = "Opens a port of a process to the server's machine while it runs, as run --publish "
             "does from "
             "its start. Says where it is. Also written cordon publish.\n",
    .examples = "  cordon connect publish 42 8080:3000\n"
                "  cordon publish 3f1c9a60/42 0:3000\n",
    .page = "cordon-connect",
    .groups = cp_groups,
};

static const struct command connect_cp = {
    .name = "connect cp",
    .usage = "FILE remote:FILE | remote:FILE FILE",
    .about = "Copies a file, or a directory with everything in it, to the server or from it. "
             "\"remote:\" stands before the one that is there; a relative path counts from the "
             "server's directory. For a file, the other may be \"-\": stdin or stdout.\n",
    .examples = "  cordon connect cp notes.txt remote:/srv/notes.txt\n"
                "  cordon connect cp remote:project .\n"
                "  cordon connect cp remote:build/out.log - | less\n",
    .page = "cordon-connect",
    .groups = cp_groups,
};

const struct command *connect_find_command(const char *word)
{
    static const struct command *const connect_commands[] = {
        &connect_run,  &connect_ps,      &connect_attach, &connect_logs,
        &connect_kill, &connect_publish, &connect_cp,
    };

    for (size_t i = 0; i < sizeof connect_commands / sizeof *connect_commands; i++)
        if (str_eq(connect_commands[i]->name + strlen("connect "), word))
            return connect_commands[i];
    return NULL;
}

/* --- the command --- */

bool connect_parse(char **argv, struct connect_options *options, char ***ret_rest, int *ret_status)
{
    struct options_rest rest;
    struct err err;

    *options = (struct connect_options){.grace_ns = GRACE_S * CLOCK_NS_PER_S};
    run_options_init(&options->run);
    *ret_status = EXIT_FAILED;
    if (options_parse(connect_server_groups, argv + 1, options, &rest, &err)) {
        console_say("%s (\"cordon help connect\" lists all)", err.msg);
        return false;
    }
    if (rest.wants_help) {
        *ret_status = help_print_command(&command_connect, true);
        return false;
    }
    if (!*rest.argv || !connect_find_command(*rest.argv)) {
        console_say("a server has the commands run, ps, attach, logs, kill, publish and cp%s%s%s "
                    "(\"cordon help connect\" explains them)",
                    *rest.argv ? ", but no \"" : "", *rest.argv ? *rest.argv : "",
                    *rest.argv ? "\"" : "");
        return false;
    }
    *ret_rest = rest.argv;
    return true;
}

static void connect_options_done(struct connect_options *options)
{
    run_options_done(&options->run);
}

static int connect_exec(char **argv)
{
    AUTO(connect_options_done)
    struct connect_options options; /* only read to complain about them here */
    struct err err;
    char **rest;
    int status;

    if (!connect_parse(argv, &options, &rest, &status))
        return status;
    program_exec("cordon-client", argv, &err);
    return console_fail(&err);
}

const struct command command_connect = {
    .name = "connect",
    .summary = "run and watch commands at an exec server",
    .usage = "[--connect URL] [--auth-token-file FILE] COMMAND [OPTION]... [ARGUMENT]...",
    .about = "Does something at an exec server, as \"cordon serve\" is one: also written cordon "
             "--connect URL COMMAND.\n"
             "\n"
             "  run [OPTION]... -- COMMAND ...    runs a command there\n"
             "  ps [--json]                       lists what runs there\n"
             "  attach [OPTION]... ID             your terminal, on a process there\n"
             "  logs [-f] [--from OFFSET] ID      what a process there wrote\n"
             "  kill [-s SIGNAL] ID               ends one\n"
             "  publish ID HOSTPORT:PORT          opens a port of one there\n"
             "  cp FILE remote:FILE               copies a file or directory there, or from "
             "there\n"
             "\n"
             "An ID is PROCESS or SESSION/PROCESS, as ps lists them. With a server that is not "
             "Cordon's, run, logs, kill and cp work; it neither lists processes nor lets a client "
             "attach.\n",
    .examples = "  cordon --connect ws://127.0.0.1:7777 ps\n"
                "  cordon connect ps                  # of $XDG_RUNTIME_DIR/cordon.sock\n"
                "  cordon connect attach --read-only 42\n"
                "  cordon connect ps --help\n",
    .page = "cordon-connect",
    .groups = connect_all_groups,
    .run = connect_exec,
};
