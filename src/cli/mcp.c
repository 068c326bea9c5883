/* `cordon mcp`: the server of MCP. As with `cordon serve`, the work is done by cordon-server, so that `cordon run` does not
 * load what a server needs; here are the options, which both programs read, and the way to it. */
#include "cli/mcp.h"

#include "base/program.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/serve.h"

#include <stddef.h>
#include <unistd.h>

static const char *const format_words[] = {"text", "json", NULL};
static const char *const at_end_words[] = {"keep", "accept", "drop", NULL};
static const char *const level_words[] = {"error", "warn", "info", "debug", NULL};

static const struct option listen_options[] = {
    {.name = "listen",
     .value = "URL",
     INTO_LIST(struct mcp_run_options, listen),
     .max = MCP_LISTEN_MAX,
     .brief = "Serves over HTTP: http://IP:PORT",
     .help =
         "Serves over HTTP in place of standard input and output, and until it is ended: "
         "http://IP:PORT (port 0: any free one). Can be given several times. What clients connect "
         "to, with the path /mcp, is printed, a line each. An address that is not loopback needs "
         "--ws-auth capability-token or signed-bearer-token."},
    {.name = "session-idle",
     .value = "TIME",
     INTO_DURATION(struct mcp_run_options, session_idle_ns),
     .min = 1,
     .wrong = "has to be longer than 0",
     .brief = "Ends a session over HTTP without a client for TIME",
     .help = "A session over HTTP ends, with what runs in it, when its client has neither asked "
             "nor listened for "
             "so long, and no request is being worked on. Default: 30m."},
    {.name = NULL},
};

/* Without a name it is a new one. */
static int set_layer(const struct option *option, void *member, const char *value, struct err *err)
{
    const char **layer = member;

    (void)option;
    if (value && !*value)
        return err_set(err, ERR_INVALID, "the name is empty");
    *layer = value ? value : "new";
    return 0;
}

static const struct option layer_options[] = {
    {.name = "layer",
     .value = "NAME",
     .may_lack = true,
     .set = set_layer,
     .offset = OPTION_OFFSET(struct mcp_run_options, layer, const char *),
     .brief = "What is written goes to a change layer",
     .help = "What commands and patches write goes to a change layer, for the user to look at and "
             "accept: the one of this NAME, or else a new one. Its model gets tools for it."},
    {.name = "at-end",
     .value = "WORD",
     .words = at_end_words,
     INTO_WORD(struct mcp_run_options, at_end, 1),
     .brief = "What becomes of the changes: keep, accept or drop",
     .help =
         "With a layer: what becomes of its changes when the server ends. accept leaves what is "
         "marked, and conflicts. Default: keep."},
    {.name = NULL},
};

static const struct option log_options[] = {
    {.name = "log-level",
     .value = "LEVEL",
     .words = level_words,
     INTO_WORD(struct mcp_run_options, log_level, LOG_LEVEL_ERROR),
     .help = "The least important lines that are written to stderr. Default: warn."},
    {.name = "log-format",
     .value = "FORM",
     .words = format_words,
     INTO_WORD(struct mcp_run_options, log_form, LOG_FORM_TEXT),
     .help = "Lines of text, or of JSON. Default: text."},
    {.name = NULL},
};

static const struct option_group groups[] = {
    {"Where", listen_options},
    {"Authentication", serve_auth_options, offsetof(struct mcp_run_options, auth)},
    {"Permissions", policy_permission_options, offsetof(struct mcp_run_options, policy)},
    {"Changes", layer_options},
    {"Log", log_options},
    {"For cordon mcp install", mcp_install_rows, offsetof(struct mcp_run_options, install)},
    {NULL, NULL},
};

bool mcp_parse(char **argv, struct mcp_run_options *ret, int *ret_status)
{
    char **rest;

    *ret = (struct mcp_run_options){.log_level = LOG_LEVEL_WARN};
    return command_parse(&command_mcp, argv, ret, &rest, ret_status) &&
           command_has_no_arguments(&command_mcp, rest, ret_status);
}

void mcp_options_done(struct mcp_run_options *options)
{
    strv_done(&options->listen);
    policy_options_done(&options->policy);
}

static bool has_more_than_profile(const struct policy_options *policy)
{
    return policy->mode != SANDBOX_AUTO || policy->directory || policy->paths_len ||
           policy->sockets.len || policy->presets.len || policy->protect.is_made ||
           policy->network || policy->watch || policy->judge || policy->tmp || policy->git ||
           network_policy_is_given(&policy->hosts);
}

static bool has_of_server(const struct mcp_run_options *options)
{
    const struct rpc_auth_options *auth = &options->auth;

    return options->listen.len || options->session_idle_ns || auth->mode != RPC_AUTH_NONE ||
           auth->token_file || auth->token_sha256 || auth->shared_secret_file;
}

/* `argv` from the word install on; options may come behind the client, too. */
static int install_run(char **argv, struct mcp_run_options *options)
{
    struct client_server server = {.url = NULL};
    char **client, **rest;
    int status;

    if (!command_parse(&command_mcp, argv, options, &client, &status))
        return status;
    rest = client;
    if (*client && !command_parse(&command_mcp, client, options, &rest, &status))
        return status;
    if (*rest)
        return console_failf("one client at a time: cordon mcp install %s", *client);
    if (has_of_server(options))
        return console_failf("--listen, --session-idle and --ws-auth are for the server: start it "
                             "with them, and tell clients of it by cordon mcp install --url");
    if (options->at_end || (options->layer && options->install.url))
        return console_failf(options->at_end
                                 ? "cordon mcp install writes no --at-end: put at_end below "
                                   "[mcp] of config.toml"
                                 : "--layer is for the server: start it with that");
    server.layer = options->layer;
    server.profile = options->policy.profile;
    server.config = options->policy.config;
    if (has_more_than_profile(&options->policy))
        return console_failf(
            "cordon mcp install writes --profile, --config and --layer into the client's "
            "entry: put other permissions "
            "into a profile of config.toml, or into the entry's args yourself");
    return mcp_install(&options->install, &server, *client);
}

/* Options and perhaps `install`; an exit status, or -1: the server is to be started. */
static int read_words(char **argv, struct mcp_run_options *options)
{
    char **rest;
    int status;

    if (!command_parse(&command_mcp, argv, options, &rest, &status))
        return status;
    if (*rest && str_eq(*rest, "install"))
        return install_run(rest, options);
    if (*rest)
        return console_failf("there is no \"cordon mcp %s\"; there is \"cordon mcp install\" (with "
                             "--undo it takes out what it wrote), and \"cordon mcp\" alone, which "
                             "clients start",
                             *rest);
    if (mcp_install_is_given(&options->install))
        return console_failf("--print, --undo, --project, --approve, --url, --token-env and --json "
                             "are options of cordon mcp install");
    return -1;
}

static int mcp_run(char **argv)
{
    struct mcp_run_options options = {
        .log_level = LOG_LEVEL_WARN}; /* only read to complain about them here */
    struct err err;
    int status = read_words(argv, &options);

    if (status < 0 && !options.listen.len && isatty(STDIN_FILENO))
        console_say(
            "MCP is spoken here, by programs: a client starts this command itself (\"cordon "
            "mcp install\" tells it to). Ctrl-D ends it.");
    mcp_options_done(&options);
    if (status >= 0)
        return status;
    program_exec("cordon-server", argv, &err);
    return console_fail(&err);
}

const struct command command_mcp = {
    .name = "mcp",
    .summary = "give MCP clients (Claude Code, Codex, Cursor) a sandbox",
    .usage = "[OPTION]... [install [CLIENT]]",
    .about =
        "Serves MCP, the Model Context Protocol, on standard input and output: clients start "
        "this program themselves. Their "
        "models get tools that run commands in a sandbox, talk to them, and apply patches; "
        "what is refused is told with "
        "what would allow it. Commands start in the directory that this program was started "
        "in, with the "
        "permissions that the user's configuration gives.\n"
        "\n"
        "\"cordon mcp install\" says which clients are on this machine; with CLIENT (claude, "
        "codex, "
        "cursor, gemini, vscode) it writes the entry into that client's configuration. All else "
        "there stays as it is, byte for byte, and what was there is kept beside it.\n"
        "\n"
        "The end of standard input ends the server and all that it runs. With --listen it serves "
        "any number of clients over HTTP until SIGTERM; who may come in is as with cordon serve. "
        "docs/mcp.md "
        "describes the tools.\n",
    .examples = "  cordon mcp install\n"
                "  cordon mcp install claude\n"
                "  cordon mcp install codex --print\n"
                "  cordon mcp --listen http://127.0.0.1:7778\n",
    .page = "cordon-mcp",
    .groups = groups,
    .run = mcp_run,
};
