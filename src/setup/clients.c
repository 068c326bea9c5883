/* See clients.h. What each client reads was found out with Claude Code 2.1.330, Codex 0.169.0 and Gemini CLI; for Cursor and
 * VS Code it is what their documentation says. No secret is ever written: a token is named by a variable. */
#include "setup/clients.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/config/toml.h"
#include "setup/shell_text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CLAUDE, CODEX, CURSOR, GEMINI, VSCODE };

const struct client clients[] = {
    [CLAUDE] = {.name = "claude",
                .title = "Claude Code",
                .program = "claude",
                .restart = "begin a new session of Claude Code",
                .covers = "the Bash tool, also in the background",
                .lacks = "Read, Edit and Write (Claude's own permissions are about those), web "
                         "tools, other MCP servers, hooks"},
    [CODEX] = {.name = "codex",
               .title = "Codex",
               .program = "codex",
               .restart = "start Codex again",
               .covers = "commands, apply_patch and files, in the sandbox mode that Codex asks for",
               .lacks = "other MCP servers, hooks, web search; danger-full-access is none there "
                        "either"},
    [CURSOR] = {.name = "cursor",
                .title = "Cursor",
                .program = "cursor",
                .restart = "start Cursor again",
                .covers = "the agent's terminal, which is refused: the model uses Cordon's tools",
                .lacks = "edits, other MCP servers, terminals of yours",
                .needs_server = true},
    [GEMINI] = {.name = "gemini",
                .title = "Gemini CLI",
                .program = "gemini",
                .restart = "start Gemini CLI again",
                .covers = "run_shell_command, which is taken away: the model uses Cordon's tools",
                .lacks = "write_file, replace and the other tools, other MCP servers, hooks",
                .needs_server = true},
    [VSCODE] = {.name = "vscode",
                .title = "VS Code",
                .program = "code",
                .restart = "look at MCP: List Servers in VS Code, which starts and stops them",
                .lacks = "the agent's own terminal and edits",
                .instead = "VS Code has no hook for its agent's terminal: install the MCP server, "
                           "and switch the tool runInTerminal off in the list of tools."},
    {.name = NULL},
};

const struct client *client_find(const char *name)
{
    for (const struct client *client = clients; client->name; client++)
        if (str_eq(client->name, name))
            return client;
    return NULL;
}

/* --- files --- */

/* A file of the client: below the folder that the variable names, else below `folder` in the user's home. */
struct place {
    const char *variable; /* NULL: none counts */
    const char *folder;   /* below home; "" for home itself */
    const char *file;
    const char *project; /* below the project; NULL: projects have none */
};

static const struct place server_files[] = {
    [CLAUDE] = {"CLAUDE_CONFIG_DIR", "", ".claude.json", ".mcp.json"},
    [CODEX] = {"CODEX_HOME", ".codex", "config.toml", NULL},
    [CURSOR] = {NULL, ".cursor", "mcp.json", ".cursor/mcp.json"},
    [GEMINI] = {"GEMINI_CLI_HOME", "", ".gemini/settings.json", ".gemini/settings.json"},
    [VSCODE] = {"XDG_CONFIG_HOME", ".config", "Code/User/mcp.json", ".vscode/mcp.json"},
};

static const struct place shell_files[] = {
    [CLAUDE] = {"CLAUDE_CONFIG_DIR", ".claude", "settings.json", NULL},
    [CODEX] = {"CODEX_HOME", ".codex", "environments.toml", NULL},
    [CURSOR] = {NULL, ".cursor", "hooks.json", NULL},
    [GEMINI] = {"GEMINI_CLI_HOME", "", ".gemini/policies/cordon.toml", NULL},
    [VSCODE] = {NULL, NULL, NULL, NULL},
};

/* `path` in `inside`, which nothing may lead out of. */
static int place_path(const struct place *place, const struct client_places *places,
                      struct entry *ret, struct err *err)
{
    const char *folder = place->variable ? getenv(place->variable) : NULL;

    if (places->project) {
        ret->inside = alloc_str(places->project);
        ret->path = path_join(places->project, place->project);
        ret->mode = 0644;
        return 0;
    }
    if (folder && *folder && *folder != '/')
        return err_set(err, ERR_INVALID, "%s is \"%s\", which is not an absolute path",
                       place->variable, folder);
    if (folder && *folder)
        ret->inside = path_clean("/", folder);
    else
        ret->inside = alloc_str(places->home);
    ret->path = (folder && *folder) || !*place->folder
                    ? path_join(ret->inside, place->file)
                    : alloc_strf("%s/%s/%s", places->home, place->folder, place->file);
    ret->mode = 0600;
    return 0;
}

char *client_folder(const struct client *client, const char *home)
{
    static const char *const folders[] = {[CLAUDE] = ".claude",
                                          [CODEX] = ".codex",
                                          [CURSOR] = ".cursor",
                                          [GEMINI] = ".gemini",
                                          [VSCODE] = ".config/Code"};
    return path_join(home, folders[client - clients]);
}

/* --- the entry of the server --- */

static bool is_server(const char *command, const char *first, const char *url)
{
    if (command)
        return str_eq(path_name(command), "cordon") && first && str_eq(first, "mcp");
    return url && str_ends(url, "/mcp");
}

static bool is_our_server(const json_t *value)
{
    const char *command = json_string_value(json_object_get(value, "command"));
    const char *first = json_string_value(json_array_get(json_object_get(value, "args"), 0));
    const char *url = json_string_value(json_object_get(value, "url"));

    if (!url)
        url = json_string_value(json_object_get(value, "httpUrl"));
    return is_server(command, first, url);
}

static const char *text_of(const struct toml_node *node)
{
    return node && node->kind == TOML_STRING ? node->string : NULL;
}

static bool is_our_table(const struct toml_node *table)
{
    const struct toml_node *args = toml_find(table, "args");
    const char *first =
        args && args->kind == TOML_ARRAY && args->len ? text_of(&args->items[0]) : NULL;

    return is_server(text_of(toml_find(table, "command")), first, text_of(toml_find(table, "url")));
}

static json_t *arguments(const struct client_server *server)
{
    json_t *args = json_pack("[s]", "mcp");

    if (server->profile) {
        json_array_append_new(args, json_string("--profile"));
        json_array_append_new(args, json_string(server->profile));
    }
    if (server->config) {
        json_array_append_new(args, json_string("--config"));
        json_array_append_new(args, json_string(server->config));
    }
    if (server->layer)
        json_array_append_new(args, str_eq(server->layer, "new")
                                        ? json_string("--layer")
                                        : json_sprintf("--layer=%s", server->layer));
    return args;
}

/* "Bearer ${NAME}", as the client writes variables. */
static json_t *headers(int id, const char *variable)
{
    bool has_word = id == CURSOR || id == VSCODE;
    AUTO_FREE char *text = alloc_strf("Bearer ${%s%s}", has_word ? "env:" : "", variable);

    return json_pack("{s:s}", "Authorization", text);
}

static json_t *server_json(int id, const struct client_places *places,
                           const struct client_server *server)
{
    bool has_type = id == CLAUDE || id == VSCODE;
    json_t *json = json_object();

    if (has_type)
        json_object_set_new(json, "type", json_string(server->url ? "http" : "stdio"));
    if (server->url) {
        json_object_set_new(json, id == GEMINI ? "httpUrl" : "url", json_string(server->url));
        if (server->token_env)
            json_object_set_new(json, "headers", headers(id, server->token_env));
    } else {
        json_object_set_new(json, "command", json_string(places->cordon));
        json_object_set_new(json, "args", arguments(server));
        if (id == CLAUDE)
            json_object_set_new(json, "env", json_object());
    }
    if (server->is_approved)
        json_object_set_new(json, "trust", json_true());
    return json;
}

/* As a string of TOML; jansson escapes what is to be escaped there, too. */
static void toml_value(const json_t *value, struct buf *ret)
{
    AUTO_FREE char *text = json_dumps(value, JSON_ENCODE_ANY);

    for (const char *at = text; at && *at; at++) {
        if (*at == 0x7f)
            buf_append_str(ret, "\\u007f");
        else
            buf_append(ret, at, 1);
    }
}

static void toml_line(const char *key, json_t *value, struct buf *ret)
{
    buf_appendf(ret, "%s = ", key);
    toml_value(value, ret);
    buf_append_str(ret, "\n");
    json_decref(value);
}

static char *server_table(const struct client_places *places, const struct client_server *server)
{
    struct buf text = {.max = SIZE_MAX / 2};

    if (server->url) {
        toml_line("url", json_string(server->url), &text);
        if (server->token_env)
            toml_line("bearer_token_env_var", json_string(server->token_env), &text);
    } else {
        toml_line("command", json_string(places->cordon), &text);
        toml_line("args", arguments(server), &text);
    }
    /* calls wait for what runs; Codex gives up after 60 s otherwise */
    toml_line("tool_timeout_sec", json_integer(330), &text);
    if (server->is_approved)
        toml_line("default_tools_approval_mode", json_string("approve"), &text);
    return buf_take(&text);
}

int client_server_entry(const struct client *client, const struct client_places *places,
                        const struct client_server *server, struct entry *ret, struct err *err)
{
    static const char *const keys[] = {"mcpServers", "cordon", NULL};
    static const char *const vscode_keys[] = {"servers", "cordon", NULL};
    static const char *const codex_keys[] = {"mcp_servers", "cordon", NULL};
    int id = (int)(client - clients);
    struct entry entry = {.form = id == CODEX ? ENTRY_TABLE : ENTRY_JSON};

    if (places->project && !server_files[id].project)
        return err_set(err, ERR_UNSUPPORTED,
                       "%s takes servers from the user's file alone: leave "
                       "--project out",
                       client->title);
    if (server->is_approved && id != CODEX && id != GEMINI)
        return err_set(err, ERR_UNSUPPORTED,
                       "%s cannot be told that in the entry of a server: choose it there when it "
                       "asks first",
                       client->title);
    if (place_path(&server_files[id], places, &entry, err))
        return -1;
    if (id == CODEX) {
        entry.mark = "# Written by `cordon mcp install codex`; --undo takes it out again.";
        entry.block = (struct toml_block){
            .table = "mcp_servers.cordon", .keys = codex_keys, .is_ours = is_our_table};
        entry.text = server_table(places, server);
    } else {
        entry.place.keys = id == VSCODE ? vscode_keys : keys;
        entry.value = server_json(id, places, server);
        entry.is_ours = is_our_server;
    }
    *ret = entry;
    return 0;
}

/* --- the client's own shell --- */

static bool is_our_link(const json_t *value)
{
    return json_is_string(value) && str_ends(json_string_value(value), "/clients/claude-shell");
}

static bool is_any(const json_t *value)
{
    return true;
}

static bool is_cursor_hook(const json_t *value)
{
    const char *command = json_string_value(json_object_get(value, "command"));

    return command && str_ends(command, " integrate hook cursor");
}

#define CODEX_MARK "# Written by `cordon integrate codex`; --undo takes it away again."
#define GEMINI_MARK "# Written by `cordon integrate gemini`; --undo takes it away again."

/* 999 is the most that a rule of the user's can have. */
static const char gemini_policy[] = GEMINI_MARK
    "\n[[rule]]\ntoolName = \"run_shell_command\"\ndecision = \"deny\"\npriority = 999\n"
    "denyMessage = \"Commands run in a sandbox here: use exec_command of the MCP server "
    "cordon.\"\n";

/* "/usr/bin/cordon integrate hook cursor", for a shell. */
static json_t *hook_command(const struct client *client, const struct client_places *places)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};

    shell_quote(places->cordon, &text);
    buf_appendf(&text, " integrate hook %s", client->name);
    return json_string(text.data);
}

static char *environments_text(const struct client_places *places)
{
    struct buf text = {.max = SIZE_MAX / 2};

    buf_append_str(&text, CODEX_MARK "\n");
    toml_line("default", json_string("cordon"), &text);
    buf_append_str(&text, "\n[[environments]]\n");
    toml_line("id", json_string("cordon"), &text);
    toml_line("program", json_string(places->cordon), &text);
    toml_line("args", json_pack("[s, s, s]", "serve", "--listen", "stdio"), &text);
    return buf_take(&text);
}

static void fill_shell_entry(const struct client *client, const struct client_places *places,
                             struct entry *ret)
{
    static const char *const claude_keys[] = {"env", "CLAUDE_CODE_SHELL_PREFIX", NULL};
    static const char *const cursor_keys[] = {"hooks", "beforeShellExecution", NULL};
    int id = (int)(client - clients);

    if (id == CLAUDE) {
        ret->place.keys = claude_keys;
        ret->is_ours = is_our_link;
        ret->value = json_string(places->link);
    } else if (id == CURSOR) {
        ret->base = "{\n  \"version\": 1\n}\n";
        ret->place = (struct json_place){.keys = cursor_keys, .is_item = is_cursor_hook};
        ret->is_ours = is_any;
        ret->value =
            json_pack("{s:o, s:b}", "command", hook_command(client, places), "failClosed", 1);
    } else {
        ret->form = ENTRY_FILE;
        ret->mark = id == CODEX ? CODEX_MARK : GEMINI_MARK;
        ret->text = id == CODEX ? environments_text(places) : alloc_str(gemini_policy);
    }
}

int client_shell_entry(const struct client *client, const struct client_places *places,
                       struct entry *ret, struct err *err)
{
    struct entry entry = {.form = ENTRY_JSON};

    if (!client->covers)
        return err_set(err, ERR_UNSUPPORTED, "%s", client->instead);
    if (place_path(&shell_files[client - clients], places, &entry, err))
        return -1;
    fill_shell_entry(client, places, &entry);
    *ret = entry;
    return 0;
}
