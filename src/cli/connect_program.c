/* The program cordon-client behind `cordon --connect URL ...`: gives each command its options and
 * arguments in the client's own terms. */
#include "cli/connect.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/user_token.h"
#include "cli/config_file.h"
#include "cli/console.h"
#include "cli/remote_policy.h"
#include "client/client.h"
#include "executor/outside.h"
#include "policy/profile.h"
#include "rpc/transport/listener.h"

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOKEN_FILE_MAX = 64 * 1024 };

/* All that this program is; what help texts are made of. */
const struct command *const commands[] = {&command_connect, NULL};

static const struct client_console console = {
    .say = console_say, .print_json = console_print_json, .set_raw = console_set_raw};

/* --- the commands --- */

typedef int handler_fn(const struct client *client, const struct connect_options *options,
                       char **arguments, int *ret_status, struct err *err);

/* What `run` cannot do at a server, and what does it there. */
static int check_run(const struct connect_options *options, struct err *err)
{
    const struct run_options *run = &options->run;

    if (run->policy.config)
        return err_set(
            err, ERR_UNSUPPORTED,
            "--config: a server has its own configuration, which \"cordon serve\" reads");
    if (run->policy.hosts.hooks)
        return err_set(err, ERR_UNSUPPORTED,
                       "--credential: a server has its own secrets: name them in a profile of its, "
                       "[permissions.NAME.network.credentials]");
    if (run->flags & RUN_NO_AUDIT)
        return err_set(err, ERR_UNSUPPORTED,
                       "--no-audit: the log there belongs to the server's user, whose server "
                       "writes it; leave the option out");
    if (run->layer.is_wanted || run->layer.is_undoable || run->layer.at_end ||
        run->layer.direct.len || run->layer.has_git)
        return err_set(err, ERR_UNSUPPORTED,
                       "--layer, --undo: at a server a layer is made and accepted by its clients "
                       "(layer/create; in Python and TypeScript layers of a connection); run the "
                       "command here, or leave the option out");
    if (run->trace_to && !run->policy.topics)
        return err_set(err, ERR_INVALID, "--trace-to needs --trace");
    return 0;
}

/* What is asked for that only the executor does. */
static bool wants_execution(const struct run_options *run)
{
    struct run_options plain;

    run_options_init(&plain);
    for (int i = 0; i < LIMIT_COUNT; i++)
        if (run->limits.of[i])
            return true;
    return run->policy.approval_word || run->policy.yes_means_unsandboxed || run->policy.topics ||
           run->policy.reports_later || run->timeout_ns ||
           run->kill_after_ns != plain.kill_after_ns || run->max_output != plain.max_output ||
           run->flags & RUN_JSON;
}

static struct client_execution execution_of(const struct run_options *run)
{
    return (struct client_execution){
        .approval = run->policy.approval_word,
        .yes_means_unsandboxed = run->policy.yes_means_unsandboxed,
        .timeout_ns = run->timeout_ns,
        .kill_after_ns = run->kill_after_ns,
        .max_output = run->max_output,
        .limits = run->limits,
        .topics = run->policy.topics,
        .trace_to = run->trace_to,
        .reports_later = run->policy.reports_later,
        .is_json = run->flags & RUN_JSON,
    };
}

static int do_run(const struct client *client, const struct connect_options *options,
                  char **arguments, int *ret_status, struct err *err)
{
    const struct run_options *asked = &options->run;
    const struct policy_options *policy = &asked->policy;
    AUTO(remote_policy_done) struct remote_policy lists = {0};
    AUTO(outside_done) struct outside hook = {.program = NULL};
    const struct client_execution execution = execution_of(asked);
    struct client_run run = {
        .argv = arguments,
        .env = strv_view(&policy->env),
        .inherit = policy->inherit,
        .env_include = strv_view(&policy->env_include),
        .env_exclude = strv_view(&policy->env_exclude),
        .cwd = policy->directory,
        .input = asked->input == RUN_INPUT_NULL ? CLIENT_STDIN_NULL : CLIENT_STDIN_PIPE,
        .flags = (asked->terminal == RUN_TERMINAL_YES ? CLIENT_RUN_TTY : 0) |
                 (asked->flags & RUN_QUIET ? CLIENT_RUN_QUIET : 0) |
                 (options->flags & CONNECT_DETACHED ? CLIENT_RUN_DETACHED : 0),
        .execution = wants_execution(asked) ? &execution : NULL,
        .approval_timeout_ns = asked->approval_timeout_ns,
    };

    if (check_run(options, err))
        return -1;
    if (run.execution && options->flags & CONNECT_DETACHED)
        return err_set(err, ERR_UNSUPPORTED,
                       "--detach: nobody waits then for time limits, questions, traces or a "
                       "result; leave --detach out, or those options");
    if (asked->approval_hook && outside_hook(asked->approval_hook, "/", &hook, err))
        return err_wrap(err, "--approval-hook");
    run.hook = hook.program;
    run.hook_env = strv_view(&hook.env);
    remote_policy_take(policy, &lists, &run);
    return client_run(client, &run, ret_status, err);
}

static int do_ps(const struct client *client, const struct connect_options *options,
                 char **arguments, int *ret_status, struct err *err)
{
    return client_ps(client, options->flags & CONNECT_JSON ? CLIENT_JSON : CLIENT_TEXT, ret_status,
                     err);
}

static int do_attach(const struct client *client, const struct connect_options *options,
                     char **arguments, int *ret_status, struct err *err)
{
    struct detach_key key;
    struct client_attach attach = {
        .id = arguments[0],
        .mode = options->flags & CONNECT_READ_ONLY ? CLIENT_ATTACH_READ_ONLY : CLIENT_ATTACH_WRITE,
        .key = &key,
        .key_text = options->detach_key ? options->detach_key : "ctrl-\\",
    };

    if (detach_key_parse(attach.key_text, &key, err))
        return err_wrap(err, "--detach-key");
    if (client_position_parse(options->from ? options->from : "-8K", &attach.from, err))
        return err_wrap(err, "--from");
    return client_attach(client, &attach, ret_status, err);
}

static int do_logs(const struct client *client, const struct connect_options *options,
                   char **arguments, int *ret_status, struct err *err)
{
    struct client_logs logs = {
        .id = arguments[0],
        .mode = options->flags & CONNECT_FOLLOW ? CLIENT_LOGS_FOLLOW : CLIENT_LOGS_SO_FAR,
    };

    if (client_position_parse(options->from ? options->from : "start", &logs.from, err))
        return err_wrap(err, "--from");
    return client_logs(client, &logs, ret_status, err);
}

static int do_kill(const struct client *client, const struct connect_options *options,
                   char **arguments, int *ret_status, struct err *err)
{
    const struct client_kill kill = {
        .id = arguments[0],
        .signal = options->signal,
        .grace_ns = options->grace_ns,
    };

    return client_kill(client, &kill, ret_status, err);
}

static int do_publish(const struct client *client, const struct connect_options *options,
                      char **arguments, int *ret_status, struct err *err)
{
    return client_publish(client, arguments[0], arguments[1], ret_status, err);
}

static int do_cp(const struct client *client, const struct connect_options *options,
                 char **arguments, int *ret_status, struct err *err)
{
    return client_cp(client, arguments[0], arguments[1], ret_status, err);
}

static const struct handler {
    const char *word;
    size_t arguments; /* how many it takes */
    bool takes_more;
    handler_fn *run;
} handlers[] = {
    {"run", 1, true, do_run},    {"ps", 0, false, do_ps},     {"attach", 1, false, do_attach},
    {"logs", 1, false, do_logs}, {"kill", 1, false, do_kill}, {"publish", 2, false, do_publish},
    {"cp", 2, false, do_cp},
};

/* --- the server --- */

/* The whole file without white space around it; caller frees. */
static char *read_token(const char *path, struct err *err)
{
    AUTO(buf_done) struct buf text = {.max = TOKEN_FILE_MAX};
    const char *begin;
    size_t len;

    if (fd_read_given(path, TOKEN_FILE_MAX, &text, err)) {
        err_wrap(err, "--auth-token-file");
        return NULL;
    }
    begin = text.len ? text.data + strspn(text.data, " \t\r\n") : "";
    len = strcspn(begin, " \t\r\n");
    if (len)
        return alloc_strn(begin, len);
    err_set(err, ERR_INVALID, "the token file %s is empty", path);
    return NULL;
}

/* What this user's own servers at loopback addresses know; NULL for others, and when there is none. */
static int find_user_token(const char *url, char **ret, struct err *err)
{
    AUTO(config_file_done) struct config_file place = {0};
    struct rpc_address address;
    struct err cause; /* that of an address is said when it is connected to */

    *ret = NULL;
    if (rpc_address_parse(url, &address, &cause) || address.transport != RPC_WS ||
        !rpc_address_is_loopback(&address))
        return 0;
    if (config_file_place(&place, err))
        return -1;
    if (!place.dir || user_token_read(place.dir, ret, err) == 0)
        return 0;
    cause = *err;
    return err_set(err, cause.code, "%s (--auth-token-file none does without)", cause.msg);
}

static void token_auto(char **token)
{
    user_token_free(*token);
}

/* `*ret_token` is what the client borrows. */
/* Where the user's own unit listens (systemd/cordon-serve.socket), when something is there; caller frees. */
static char *usual_server(void)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    AUTO_FREE char *path = runtime && *runtime == '/' ? path_join(runtime, "cordon.sock") : NULL;

    return path && access(path, F_OK) == 0 ? alloc_strf("unix:%s", path) : NULL;
}

static int find_server(const struct connect_options *options, char **ret_usual, struct client *ret,
                       char **ret_token, struct err *err)
{
    const char *given = options->url ? options->url : getenv("CORDON_CONNECT");
    const char *url = given && *given ? given : (*ret_usual = usual_server());
    const char *file = options->token_file ? options->token_file : getenv("CORDON_TOKEN_FILE");

    if (!url)
        return err_set(
            err, ERR_INVALID,
            "which server? cordon --connect URL ..., or CORDON_CONNECT in the "
            "environment; a URL is ws://IP:PORT or unix:PATH, as \"cordon serve\", which "
            "starts one, prints it when it begins");
    *ret = (struct client){.server = {.url = url}, .console = &console};
    if (!file || !*file) {
        if (find_user_token(url, ret_token, err))
            return -1;
        ret->server.user_token = *ret_token;
    } else if (!str_eq(file, "none")) {
        *ret_token = read_token(file, err);
        if (!*ret_token)
            return -1;
        ret->server.token = *ret_token;
    }
    return 0;
}

/* --- the whole --- */

static bool has_arguments(const struct handler *handler, const struct command *command,
                          char **arguments)
{
    size_t count = 0;

    while (arguments[count])
        count++;
    if (count == handler->arguments || (count > handler->arguments && handler->takes_more))
        return true;
    console_say("cordon %s %s: %s argument (\"cordon %s --help\" explains it)", command->name,
                command->usage,
                count < handler->arguments ? "it lacks an" : "there is one too many",
                command->name);
    return false;
}

static void options_done(struct connect_options *options)
{
    run_options_done(&options->run);
}

int main(int argc, char **argv)
{
    const struct handler *handler = handlers;
    const struct command *command;
    AUTO(options_done) struct connect_options options = {.url = NULL};
    AUTO(token_auto) char *token = NULL;
    AUTO_FREE char *usual = NULL;
    struct client client;
    struct err err;
    char **arguments;
    char **rest;
    int status;

    signal(SIGPIPE, SIG_IGN);
    if (!connect_parse(argv, &options, &rest, &status))
        return status;
    while (!str_eq(handler->word, *rest)) /* connect_parse() let only these through */
        handler++;
    command = connect_find_command(*rest);
    if (!command_parse(command, rest, &options, &arguments, &status))
        return status;
    if (!has_arguments(handler, command, arguments))
        return EXIT_FAILED;
    if (find_server(&options, &usual, &client, &token, &err) ||
        handler->run(&client, &options, arguments, &status, &err))
        return console_fail(&err);
    return status;
}
