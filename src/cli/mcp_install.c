/* See mcp_install.h. Without a client it looks at all, and says what would be done; it writes for one that is named. */
#include "cli/mcp_install.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/console.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct option mcp_install_rows[] = {
    {.name = "print",
     INTO_TRUE(struct mcp_install_options, client.prints),
     .help = "Prints the entry, and writes nothing."},
    {.name = "undo",
     INTO_TRUE(struct mcp_install_options, client.undoes),
     .brief = "Takes the entry out again",
     .help = "Takes the entry out again: nothing but what was written by this command, and a file "
             "that it made and "
             "that has nothing else."},
    {.name = "project",
     INTO_TRUE(struct mcp_install_options, is_project),
     .brief = "In the file of the project, not the user's",
     .help = "In the file of the project in the current directory (.mcp.json, .cursor/mcp.json, "
             "...) in place of "
             "the user's. It gets the absolute path of this cordon."},
    {.name = "approve",
     INTO_TRUE(struct mcp_install_options, is_approved),
     .brief = "The client need not ask before a call (codex, gemini)",
     .help = "Tells the client that it need not ask before it calls a tool of Cordon's (codex, "
             "gemini): the sandbox and "
             "its own questions decide."},
    {.name = "url",
     .value = "URL",
     INTO_NOT_EMPTY(struct mcp_install_options, url),
     .brief = "For a server that runs already, over HTTP",
     .help = "For a server that runs already, by cordon mcp --listen: its address, which ends in "
             "/mcp."},
    {.name = "token-env",
     .value = "NAME",
     INTO_NOT_EMPTY(struct mcp_install_options, token_env),
     .brief = "With --url: the variable that has the token",
     .help =
         "With --url: the client sends the token that it has in this variable of its environment. "
         "The token itself is never written, since commands can read such files. Default: none, "
         "for a server "
         "with --ws-auth own-processes."},
    {.name = "json",
     .letter = 'j',
     INTO_TRUE(struct mcp_install_options, client.wants_json),
     .help = "Prints one JSON value about what was done, or would be."},
    {.name = NULL},
};

bool mcp_install_is_given(const struct mcp_install_options *options)
{
    const struct client_options *client = &options->client;

    return client->prints || client->undoes || client->wants_json || options->is_project ||
           options->is_approved || options->url || options->token_env;
}

static int list(const struct mcp_install_options *options, const struct client_setup *setup,
                const struct client_server *server)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    AUTO_JSON json_t *all = json_array();

    for (const struct client *client = clients; client->name; client++) {
        AUTO(entry_done) struct entry entry = {.path = NULL};
        struct err err;
        bool can = client_server_entry(client, &setup->places, server, &entry, &err) == 0;

        json_array_append_new(all, client_setup_tell(client, setup, can ? &entry : NULL,
                                                     can ? NULL : err.msg, &text));
    }
    console_line(&text, "%s", "");
    console_line(&text,
                 "Nothing was written. cordon mcp install CLIENT writes one, --print shows it.");
    return options->client.wants_json ? console_print_json(all) : console_print(&text);
}

static bool is_variable(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

    return !name[strspn(name, letters)] && !(*name >= '0' && *name <= '9');
}

int mcp_install(const struct mcp_install_options *options, const struct client_server *server,
                const char *name)
{
    AUTO(client_setup_done) struct client_setup setup = {.home = NULL};
    AUTO(entry_done) struct entry entry = {.path = NULL};
    const struct client *client = name ? client_find(name) : NULL;
    const struct policy_options policy = {.profile = server->profile, .config = server->config};
    AUTO_FREE char *cwd = getcwd(NULL, 0);
    AUTO_FREE char *config = server->config ? path_clean(cwd ? cwd : "/", server->config) : NULL;
    struct client_server wanted = *server;
    struct err err;

    wanted.config = config; /* the client starts it elsewhere */
    wanted.url = options->url;
    wanted.token_env = options->token_env;
    wanted.is_approved = options->is_approved;
    if (client_options_check(&options->client, "mcp install", name, &err))
        return console_fail(&err);
    if (options->url && !str_starts(options->url, "http://") &&
        !str_starts(options->url, "https://"))
        return console_failf("--url: \"%s\" does not begin with http:// or https://", options->url);
    if (options->token_env && (!options->url || !is_variable(options->token_env)))
        return console_failf(options->url ? "--token-env: \"%s\" is no name of a variable"
                                          : "--token-env %s needs --url",
                             options->token_env);
    if (client_setup_init(&setup, options->is_project,
                          client && !options->client.undoes ? &policy : NULL, &err))
        return console_fail(&err);
    if (!client)
        return list(options, &setup, &wanted);
    if (client_server_entry(client, &setup.places, &wanted, &entry, &err))
        return console_fail(&err);
    return client_setup_apply(client, &entry, &options->client, NULL);
}
