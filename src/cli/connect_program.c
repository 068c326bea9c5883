/* The program cordon-client behind `cordon --connect URL ...`: gives each command its options and
 * arguments in the client's own terms. */
#include "cli/connect.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/console.h"
#include "client/client.h"

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { TOKEN_FILE_MAX = 64 * 1024 };

/* All that this program is; what help texts are made of. */
const struct command *const commands[] = {&command_connect, NULL};

static const struct client_console console = {.say = console_say, .set_raw = console_set_raw};

/* --- the commands --- */

typedef int handler_fn(const struct client *client, const struct connect_options *options,
                       char **arguments, int *ret_status, struct err *err);

static int do_run(const struct client *client, const struct connect_options *options,
                  char **arguments, int *ret_status, struct err *err)
{
    const struct client_run run = {
        .argv = arguments,
        .env = strv_view(&options->env),
        .cwd = options->directory,
        .profile = options->profile,
        .network = options->network,
        .watch = options->watch,
        .deny = strv_view(&options->deny),
        .readable = strv_view(&options->readable),
        .writable = strv_view(&options->writable),
        .sockets = strv_view(&options->sockets),
        .input = options->input,
        .flags = (options->flags & CONNECT_TTY ? CLIENT_RUN_TTY : 0) |
                 (options->flags & CONNECT_DETACHED ? CLIENT_RUN_DETACHED : 0),
    };

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
    {"logs", 1, false, do_logs}, {"kill", 1, false, do_kill}, {"cp", 2, false, do_cp},
};

/* --- the server --- */

/* The whole file without white space around it; caller frees. */
static char *read_token(const char *path, struct err *err)
{
    AUTO(buf_done) struct buf text = {.max = TOKEN_FILE_MAX};
    const char *begin;
    size_t len;

    if (fd_read_file(path, TOKEN_FILE_MAX, &text, err)) {
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

static int find_server(const struct connect_options *options, struct client *ret, char **ret_token,
                       struct err *err)
{
    const char *url = options->url ? options->url : getenv("CORDON_CONNECT");
    const char *file = options->token_file ? options->token_file : getenv("CORDON_TOKEN_FILE");

    if (!url || !*url)
        return err_set(err, ERR_INVALID,
                       "which server? cordon --connect URL ..., or CORDON_CONNECT in the "
                       "environment; a URL is ws://IP:PORT or unix:PATH");
    if (file && *file) {
        *ret_token = read_token(file, err);
        if (!*ret_token)
            return -1;
    }
    *ret = (struct client){.server = {.url = url, .token = *ret_token}, .console = &console};
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
    strv_done(&options->env);
    strv_done(&options->deny);
    strv_done(&options->readable);
    strv_done(&options->writable);
    strv_done(&options->sockets);
}

int main(int argc, char **argv)
{
    const struct handler *handler = handlers;
    const struct command *command;
    AUTO(options_done) struct connect_options options = {.url = NULL};
    AUTO_FREE char *token = NULL;
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
    if (find_server(&options, &client, &token, &err) ||
        handler->run(&client, &options, arguments, &status, &err))
        return console_fail(&err);
    return status;
}
