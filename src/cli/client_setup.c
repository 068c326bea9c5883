/* See client_setup.h. What is written into a client's file is started by it later, outside of every sandbox. So it names
 * the real path of this program, and that has to be one that no command in a sandbox can change. */
#include "cli/client_setup.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "base/program.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/config_file.h"
#include "cli/console.h"
#include "policy/access.h"
#include "policy/host_view.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int client_options_check(const struct client_options *options, const char *command,
                         const char *name, struct err *err)
{
    const char *wish = options->undoes ? "undo" : "print";

    if (name && !client_find(name))
        return err_set(err, ERR_INVALID,
                       "\"%s\" is no client that Cordon knows: claude, codex, cursor, gemini and "
                       "vscode are",
                       name);
    if (options->undoes && options->prints)
        return err_set(err, ERR_INVALID, "--print and --undo contradict each other");
    if (!name && (options->undoes || options->prints))
        return err_set(err, ERR_INVALID, "of which client? cordon %s CLIENT --%s", command, wish);
    return 0;
}

/* --- places --- */

/* Whether a command that starts in this directory could put another program in the place of this one, also with the
 * temporary folders of the machine. No folders are made for a look. */
static int check_program(const char *program, const struct policy_options *policy, struct err *err)
{
    struct policy_options options = *policy; /* borrows */
    AUTO(settings_done) struct settings settings = {0};
    const struct access_map *access;

    options.tmp = WORKSPACE_TMP_HOST;
    if (settings_init(&settings, &options, err))
        return err_wrap(err, "finding out what commands may write");
    access = settings.workspace->access;
    if (access && access->restricted && path_may_change(&host_view_real, access, program))
        return err_set(err, ERR_FORBIDDEN,
                       "a command in %s could replace %s, which the client would start: run this "
                       "where you work, or install Cordon elsewhere",
                       access ? settings.workspace->dir : "a sandbox", program);
    return 0;
}

int client_setup_init(struct client_setup *ret, bool is_project,
                      const struct policy_options *policy, struct err *err)
{
    AUTO(config_file_done) struct config_file config = {0};
    AUTO(client_setup_done) struct client_setup setup = {.home = NULL};
    AUTO_FREE char *self = program_self();

    if (config_file_place(&config, err))
        return -1;
    if (!config.home || !config.dir)
        return err_set(err, ERR_NOT_FOUND, "your home directory is not known: set HOME");
    setup.home = TAKE_PTR(config.home);
    setup.link = path_join(config.dir, "clients/claude-shell");
    setup.cordon = realpath(self, NULL);
    if (!setup.cordon)
        return err_sys(err, "this program, %s", self);
    if (!utf8_is_valid(setup.cordon, strlen(setup.cordon)) ||
        !utf8_is_valid(setup.link, strlen(setup.link)))
        return err_set(err, ERR_UNSUPPORTED,
                       "%s is not UTF-8, which the client's file has to be: install Cordon "
                       "elsewhere",
                       setup.cordon);
    if (policy && strstr(setup.cordon, "/_npx/"))
        return err_set(err, ERR_FORBIDDEN,
                       "npx keeps this copy of Cordon for a while only: npm install -g cordon, and "
                       "run that one");
    if (is_project && !(setup.project = getcwd(NULL, 0)))
        return err_sys(err, "the current directory");
    if (policy && check_program(setup.cordon, policy, err))
        return -1;
    *ret = setup;
    ret->places = (struct client_places){setup.home, setup.project, setup.cordon, setup.link};
    setup = (struct client_setup){.home = NULL};
    return 0;
}

void client_setup_done(struct client_setup *setup)
{
    free(setup->home);
    free(setup->project);
    free(setup->cordon);
    free(setup->link);
}

/* The first of this name on PATH; caller frees, NULL: none. */
static char *find_program(const char *name)
{
    const char *search = getenv("PATH");

    for (const char *at = search ? search : ""; *at;) {
        size_t len = strcspn(at, ":");
        AUTO_FREE char *dir = alloc_strn(at, len);
        AUTO_FREE char *path = path_join(dir, name);
        struct stat st;

        if (*dir == '/' && stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0)
            return TAKE_PTR(path);
        at += len + (at[len] == ':');
    }
    return NULL;
}

bool client_is_here(const struct client *client, const struct client_setup *setup, char **ret)
{
    AUTO_FREE char *folder = client_folder(client, setup->home);

    *ret = find_program(client->program);
    return *ret || access(folder, F_OK) == 0;
}

/* --- one entry --- */

static json_t *entry_json(const struct entry *entry)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};

    if (entry->form == ENTRY_JSON)
        return json_incref(entry->value);
    entry_print(entry, &text);
    return json_string(text.data);
}

static int print_entry(const struct client *client, const struct entry *entry, bool wants_json)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    AUTO_JSON json_t *json = NULL;

    entry_print(entry, &text);
    if (!wants_json) {
        console_say("for %s:", entry->path);
        return console_print(&text);
    }
    json = json_pack("{s:s, s:o, s:o, s:s}", "client", client->name, "file",
                     json_lossy(entry->path), "entry", entry_json(entry), "text", text.data);
    return console_print_json(json);
}

static void say(const struct client *client, const struct entry *entry,
                const struct entry_result *result, const char *more, struct buf *text)
{
    switch (result->done) {
    case ENTRY_UNCHANGED:
        console_line(text, "%s: nothing to do, %s is as it should be", client->title, entry->path);
        break;
    case ENTRY_WRITTEN:
        console_line(text, "%s: wrote %s", client->title, entry->path);
        break;
    case ENTRY_REMOVED:
        console_line(text, "%s: took Cordon out of %s", client->title, entry->path);
        break;
    case ENTRY_FILE_REMOVED:
        console_line(text, "%s: removed %s, which had nothing else", client->title, entry->path);
        break;
    }
    if (result->backup)
        console_line(text, "  what was there is in %s", result->backup);
    if (result->done != ENTRY_UNCHANGED)
        console_line(text, "  now %s", client->restart);
    if (result->done == ENTRY_WRITTEN && more)
        console_lines(text, "  ", more);
}

int client_setup_apply(const struct client *client, const struct entry *entry,
                       const struct client_options *options, const char *more)
{
    struct entry_result result;
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    AUTO_JSON json_t *json = NULL;
    struct err err;
    int status;

    if (options->prints)
        return print_entry(client, entry, options->wants_json);
    if (options->undoes ? entry_remove(entry, &result, &err) : entry_put(entry, &result, &err))
        return console_fail(&err);
    if (options->wants_json) {
        json = json_pack("{s:s, s:o, s:s, s:o}", "client", client->name, "file",
                         json_lossy(entry->path), "done", entry_change_words[result.done], "backup",
                         json_lossy(result.backup));
        status = console_print_json(json);
    } else {
        say(client, entry, &result, more, &text);
        status = console_print(&text);
    }
    free(result.backup);
    return status;
}

/* --- the list --- */

struct json_t *client_setup_tell(const struct client *client, const struct client_setup *setup,
                                 const struct entry *entry, const char *why, struct buf *text)
{
    static const char *const would[] = {"would be written", "is there",
                                        "is older: would be written",
                                        "has an entry of somebody else's: would be refused"};
    AUTO_FREE char *program = NULL;
    enum entry_state state = ENTRY_MISSING;
    struct err err;
    bool is_broken = entry && entry_look(entry, &state, &err);
    bool is_here = client_is_here(client, setup, &program) || state != ENTRY_MISSING || is_broken;
    const char *words = !entry ? why : is_broken ? err.msg : would[state];

    if (is_here)
        console_line(text, "%-12s %s", client->name, entry ? entry->path : words);
    else
        console_line(text, "%-12s not found on this machine", client->name);
    if (is_here && entry)
        console_line(text, "%-12s %s", "", words);
    return json_pack("{s:s, s:s, s:b, s:o, s:o, s:s, s:o}", "client", client->name, "title",
                     client->title, "found", is_here, "program", json_lossy(program), "file",
                     json_lossy(entry ? entry->path : NULL), "state",
                     !entry      ? "unsupported"
                     : is_broken ? "unreadable"
                                 : entry_state_words[state],
                     "why", json_lossy(entry && !is_broken ? NULL : words));
}
