/* `cordon serve`: the exec server. The work is done by a program of its own, cordon-server, because
 * `cordon run` is not to load what a server needs (docs/decisions/0002-*). Here are its options,
 * which both programs read (addresses and authentication are checked where they are used, by
 * cordon-server), its help, and the way to it. */
#include "cli/serve.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/program.h"
#include "base/str.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/console.h"

#include <limits.h>
#include <stddef.h>

/* --- options --- */

#define SPOOL_QUOTA_DEFAULT (UINT64_C(64) << 20) /* bytes that one process may ask for */

static int set_lifetime(const struct option *option, void *member, const char *value,
                        struct err *err)
{
    uint64_t *slot = &((struct serve_options *)member)->limits.lifetime_ns;

    if (str_eq(value, "until-ended")) {
        *slot = 0;
        return 0;
    }
    if (units_parse_duration(value, slot, err))
        return -1;
    return *slot ? 0 : err_set(err, ERR_INVALID, "has to be longer than 0");
}

static const char *const auth_words[] = {"user-token",    "capability-token", "signed-bearer-token",
                                         "own-processes", "anybody",          NULL};
static const char *const format_words[] = {"text", "json", NULL};
static const char *const level_words[] = {"error", "warn", "info", "debug", NULL};

static const struct option listen_options[] = {
    {.name = "listen",
     .value = "URL",
     INTO_LIST(struct serve_options, listen),
     .max = SERVE_LISTEN_MAX,
     .help = "Where to listen: ws://IP:PORT (port 0: any free one), unix:PATH, or stdio. Can be "
             "given several times. Default: the sockets of systemd, or else ws://127.0.0.1:0. An "
             "address that is not loopback needs --ws-auth capability-token or "
             "signed-bearer-token. The address in use is printed as the "
             "first line."},
    {.name = "config",
     .value = "FILE",
     INTO_TEXT(struct serve_options, config),
     .help = "The config file in place of the one in the config directory."},
    {.name = NULL},
};

const struct option serve_auth_options[] = {
    {.name = "ws-auth",
     .value = "MODE",
     .words = auth_words,
     INTO_WORD(struct rpc_auth_options, mode, RPC_AUTH_USER_TOKEN),
     .help = "Which clients of WebSocket or HTTP are let in. user-token, the default: this user's "
             "processes on "
             "this host, but no commands of Cordon's, that know the token in "
             "~/.config/cordon/private/ws-token, which is made when there is none; Cordon's own "
             "clients do. own-processes: the same without the token, for an unmodified Codex. "
             "capability-token, signed-bearer-token: who brings that. anybody: every client that "
             "can connect."},
    {.name = "ws-token-file",
     .value = "FILE",
     INTO_TEXT(struct rpc_auth_options, token_file),
     .help = "The capability token is the content of this file."},
    {.name = "ws-token-sha256",
     .value = "HEX",
     INTO_TEXT(struct rpc_auth_options, token_sha256),
     .help = "The SHA-256 of the capability token, in its place."},
    {.name = "ws-shared-secret-file",
     .value = "FILE",
     INTO_TEXT(struct rpc_auth_options, shared_secret_file),
     .help = "The secret that bearer tokens (JWT, HS256) are signed with; at least 32 bytes."},
    {.name = "ws-issuer",
     .value = "TEXT",
     INTO_TEXT(struct rpc_auth_options, issuer),
     .help = "The issuer that a bearer token has to name."},
    {.name = "ws-audience",
     .value = "TEXT",
     INTO_TEXT(struct rpc_auth_options, audience),
     .help = "The audience that a bearer token has to name."},
    {.name = "ws-max-clock-skew-seconds",
     .value = "N",
     INTO_TEXT(struct rpc_auth_options, max_clock_skew_s),
     .brief = "How far clocks may be apart",
     .help = "How far clocks may be apart. Default: 30."},
    {.name = NULL},
};

static const struct option approval_options[] = {
    {.name = "approval-hook",
     .value = "PROGRAM",
     INTO_TEXT(struct serve_options, approval_hook),
     .wrong = "has to be a program",
     .brief = "Is asked first, by JSON on stdin",
     .help = "Is asked first about what clients run by exec/run: it gets the question as JSON on "
             "stdin and prints {\"decision\": \"approved\"}, \"denied\" or \"ask\" (then the "
             "client, or the terminal, is asked)."},
    {.name = "approval-terminal",
     INTO_TRUE(struct serve_options, asks_terminal),
     .brief = "Asks at the terminal that the server was started from",
     .help = "Asks the person at the terminal that the server was started from, one question after "
             "the other, and not the clients."},
    {.name = "approval-timeout",
     .value = "TIME",
     INTO_DURATION(struct serve_options, limits.approval_ns),
     .min = 1,
     .wrong = "has to be longer than 0",
     .brief = "No answer after TIME is a no",
     .help = "How long a question of exec/run may wait for an answer; then it is a no. Default: "
             "1h; a hook has 60s."},
    {.name = NULL},
};

static const struct option sandbox_options[] = {
    {.name = "default-sandbox",
     .value = "NAME",
     INTO_NOT_EMPTY(struct serve_options, default_sandbox),
     .brief = "For calls that name no sandbox, as an unmodified Codex's",
     .help = "What a call of the original protocol (process/start, fs/...) runs in that names no "
             "sandbox: a "
             "profile of the configuration, default (the one that it says, else workspace-write), "
             "or none, "
             "which is the default. Calls of Cordon's own (exec/run, session/exec) that name none "
             "always have one: this, else the configuration's."},
    {.name = NULL},
};

static const struct option limit_options[] = {
    {.name = "max-connections",
     .value = "N",
     INTO_COUNT(struct serve_options, limits.connections),
     .min = 1,
     .max = UINT_MAX,
     .brief = "More clients are refused",
     .help = "More are refused. Default: 256."},
    {.name = "max-processes",
     .value = "N",
     INTO_COUNT(struct serve_options, limits.processes),
     .min = 1,
     .max = SERVER_PROCESSES_LIMIT,
     .brief = "Of all clients",
     .help = "Processes that run at the same time, of all clients; more are refused. Default: "
             "4096."},
    {.name = "session-lifetime",
     .value = "TIME",
     .set = set_lifetime,
     .brief = "How long it outlives its connection",
     .help = "How long a session outlives its connection: 80s, 10m, or until-ended, as long as "
             "anything runs in it. Default: 80s."},
    {.name = "drain-timeout",
     .value = "TIME",
     INTO_DURATION(struct serve_options, limits.drain_ns),
     .brief = "What commands have before SIGTERM when the server ends",
     .help = "How long commands may go on after SIGTERM before they get one, too. Default: 0."},
    {.name = "spool-quota",
     .value = "SIZE",
     INTO_SIZE(struct serve_options, limits.spool_quota),
     .help = "Bytes on disk that one process may have for its output. Default: 64M."},
    {.name = "concurrent-requests",
     .value = "N",
     INTO_COUNT(struct serve_options, concurrent),
     .min = 1,
     .brief = "Changes nothing",
     .help = "Changes nothing: requests never wait for each other."},
    {.name = NULL},
};

static const struct option log_options[] = {
    {.name = "log-level",
     .value = "LEVEL",
     .words = level_words,
     INTO_WORD(struct serve_options, log_level, LOG_LEVEL_ERROR),
     .help = "The least important lines that are written to stderr. Default: info."},
    {.name = "log-format",
     .value = "FORM",
     .words = format_words,
     INTO_WORD(struct serve_options, log_form, LOG_FORM_TEXT),
     .help = "Lines of text, or of JSON. Default: text."},
    {.name = NULL},
};

const struct option_group serve_option_groups[] = {
    {"Where", listen_options},
    {"Authentication", serve_auth_options, offsetof(struct serve_options, auth)},
    {"Sandbox", sandbox_options},
    {"Approval", approval_options},
    {"Limits", limit_options},
    {"Log", log_options},
    {NULL, NULL},
};

/* --- the command --- */

bool serve_parse(char **argv, struct serve_options *ret, int *ret_status)
{
    char **rest;

    *ret = (struct serve_options){
        .limits = {.lifetime_ns = 80 * CLOCK_NS_PER_S, .spool_quota = SPOOL_QUOTA_DEFAULT},
        .log_level = LOG_LEVEL_INFO,
    };
    return command_parse(&command_serve, argv, ret, &rest, ret_status) &&
           command_has_no_arguments(&command_serve, rest, ret_status);
}

static int serve_run(char **argv)
{
    struct serve_options options; /* only read to complain about them here */
    struct err err;
    int status;
    bool is_right = serve_parse(argv, &options, &status);

    strv_done(&options.listen);
    if (!is_right)
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
        "A client that may connect may run commands as this user: processes of this user, over a "
        "Unix socket of root, too, but no commands of Cordon's; over WebSocket they have to know "
        "the user's token, or --ws-auth says otherwise. "
        "Tokens are read from files and never appear in arguments, logs or a command's "
        "environment.\n"
        "\n"
        "SIGTERM ends the server: commands get SIGTERM, clients hear how they ended. SIGHUP reads "
        "the configuration and the files with tokens or secrets again. When the server is killed, "
        "so is everything that it started.\n",
    .examples = "  cordon serve\n"
                "  cordon serve --listen unix:$XDG_RUNTIME_DIR/cordon.sock\n"
                "  cordon serve --listen ws://127.0.0.1:7777 --ws-auth own-processes\n"
                "  CODEX_EXEC_SERVER_URL=ws://127.0.0.1:7777 codex exec ...\n",
    .page = "cordon-serve",
    .groups = serve_option_groups,
    .run = serve_run,
};
