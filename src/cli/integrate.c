/* `cordon integrate`: the shell that a client brings runs its commands in a sandbox. Each client has another way
 * (docs/claude-code.md and its neighbours), and none covers all that it does; what is not covered is said with it.
 *
 * Claude Code is given a program by a variable in its settings. It takes no arguments, so it is a link to this
 * program, whose name says what it is; it lies in Cordon's own folder, which no command can write. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/client_setup.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/integrate_hook.h"
#include "setup/kept_file.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the link --- */

/* It leads to this program; whatever else is there is an error, but for an older link to a cordon. */
static int make_link(const struct client_setup *setup, struct err *err)
{
    AUTO_FREE char *folder = path_parent(setup->link);
    AUTO_FREE char *temporary = alloc_strf("%s.new", setup->link);
    char target[PATH_MAX] = "";
    struct stat st;

    if (lstat(setup->link, &st) == 0 && !S_ISLNK(st.st_mode))
        return err_set(err, ERR_FORBIDDEN, "%s is there and was not made by Cordon: move it away",
                       setup->link);
    (void)!readlink(setup->link, target, sizeof target - 1);
    if (str_eq(target, setup->cordon))
        return 0;
    if (fd_make_dirs(folder, 0700, err))
        return -1;
    unlink(temporary);
    if (symlink(setup->cordon, temporary) || rename(temporary, setup->link)) {
        err_sys(err, "making %s", setup->link);
        unlink(temporary);
        return -1;
    }
    return 0;
}

static void remove_link(const struct client_setup *setup)
{
    AUTO_FREE char *folder = path_parent(setup->link);
    struct stat st;

    if (lstat(setup->link, &st) == 0 && S_ISLNK(st.st_mode))
        unlink(setup->link);
    rmdir(folder); /* if nothing else is in it */
}

/* --- the command --- */

static int list(const struct client_options *options, const struct client_setup *setup)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    AUTO_JSON json_t *all = json_array();

    for (const struct client *client = clients; client->name; client++) {
        AUTO(entry_done) struct entry entry = {.path = NULL};
        struct err err;
        bool can = client_shell_entry(client, &setup->places, &entry, &err) == 0;
        json_t *json = client_setup_tell(client, setup, can ? &entry : NULL,
                                         can ? NULL : client->instead, &text);

        if (json_is_true(json_object_get(json, "found"))) {
            console_line(&text, "%-12s covers: %s", "",
                         client->covers ? client->covers : "nothing");
            console_line(&text, "%-12s does not: %s", "", client->lacks);
        }
        json_object_set_new(json, "covers", json_lossy(client->covers));
        json_object_set_new(json, "does_not_cover", json_lossy(client->lacks));
        json_array_append_new(all, json);
    }
    console_line(&text, "%s", "");
    console_line(&text,
                 "Nothing was written. cordon integrate CLIENT writes one, --print shows it.");
    return options->wants_json ? console_print_json(all) : console_print(&text);
}

/* Claude Code's own, in which ours cannot be made. */
static bool has_own_sandbox(const struct entry *entry)
{
    static const char *const keys[] = {"sandbox", "enabled", NULL};
    const struct json_place place = {.keys = keys};
    AUTO(kept_file_done) struct kept_file file = {.path = NULL};
    AUTO_JSON json_t *root = NULL;
    struct err ignored; /* is said by what writes the entry */

    if (kept_file_read(entry->path, entry->inside, &file, &ignored) == 0)
        root = json_edit_parse(file.text.data, file.text.len, &ignored);
    return json_is_true(json_edit_find(root, &place));
}

static char *remarks(const struct client *client, const struct entry *entry)
{
    struct buf text = {.max = SIZE_MAX / 2};

    if (client->needs_server)
        buf_appendf(&text, "it needs Cordon's tools: cordon mcp install %s\n", client->name);
    if (entry->form == ENTRY_JSON && has_own_sandbox(entry))
        buf_append_str(&text,
                       "switch Claude Code's own sandbox off (\"sandbox\" in the same file): "
                       "no command runs in both\n");
    buf_appendf(&text, "not covered: %s", client->lacks);
    return buf_take(&text);
}

static int apply(const struct client_options *options, const struct client *client,
                 const struct client_setup *setup)
{
    AUTO(entry_done) struct entry entry = {.path = NULL};
    AUTO_FREE char *more = NULL;
    bool needs_link = str_eq(client->name, "claude");
    struct err err;
    int status;

    if (client_shell_entry(client, &setup->places, &entry, &err))
        return console_fail(&err);
    if (needs_link && !options->prints && !options->undoes && make_link(setup, &err))
        return console_fail(&err);
    more = remarks(client, &entry);
    status = client_setup_apply(client, &entry, options, more);
    if (needs_link && options->prints)
        console_say("%s has to be a symlink to %s", setup->link, setup->cordon);
    if (needs_link && options->undoes && status == EXIT_OK)
        remove_link(setup);
    return status;
}

static int integrate_run(char **argv)
{
    const struct policy_options policy = {.profile = NULL};
    struct client_options options = {.prints = false};
    AUTO(client_setup_done) struct client_setup setup = {.home = NULL};
    struct err err;
    char **name, **rest;
    int status;

    if (!command_parse(&command_integrate, argv, &options, &name, &status))
        return status;
    if (*name && str_eq(*name, "hook"))
        return name[1] && !name[2]
                   ? integrate_hook(name[1])
                   : console_failf("clients start it: cordon integrate hook CLIENT");
    rest = name;
    if (*name && !command_parse(&command_integrate, name, &options, &rest, &status))
        return status;
    if (*rest)
        return console_failf("one client at a time: cordon integrate CLIENT");
    if (client_options_check(&options, "integrate", *name, &err) ||
        client_setup_init(&setup, false, *name && !options.undoes ? &policy : NULL, &err))
        return console_fail(&err);
    return *name ? apply(&options, client_find(*name), &setup) : list(&options, &setup);
}

static const struct option integrate_rows[] = {
    {.name = "print",
     INTO_TRUE(struct client_options, prints),
     .help = "Prints what would be written, and writes nothing."},
    {.name = "undo",
     INTO_TRUE(struct client_options, undoes),
     .brief = "Takes it out again",
     .help = "Takes it out again: nothing but what was written by this command, and a file that it "
             "made and that has nothing else."},
    {.name = "json",
     .letter = 'j',
     INTO_TRUE(struct client_options, wants_json),
     .help = "Prints one JSON value about what was done, or would be."},
    {.name = NULL},
};

static const struct option_group integrate_groups[] = {{"What is done", integrate_rows},
                                                       {NULL, NULL}};

const struct command command_integrate = {
    .name = "integrate",
    .summary = "run the commands of Claude Code or Codex in a sandbox",
    .usage = "[OPTION]... [claude|codex|cursor|gemini|vscode]",
    .about = "Brings the shell that a client has of its own into the sandbox, by what that client "
             "offers for it: a variable "
             "of Claude Code, an environment of Codex; from Gemini CLI and Cursor it is taken away "
             "in favour of Cordon's tools. \"cordon "
             "mcp install\" gives a client "
             "Cordon's tools beside its own.\n"
             "\n"
             "Without a client it says for each on this machine what would be covered, and what "
             "not. All else in a "
             "client's configuration stays as it is, byte for byte, and what was there is kept "
             "beside it. A command whose "
             "sandbox cannot be made is not run.\n",
    .examples = "  cordon integrate\n"
                "  cordon integrate claude\n"
                "  cordon integrate codex --print\n"
                "  cordon integrate claude --undo\n",
    .page = "cordon-integrate",
    .groups = integrate_groups,
    .run = integrate_run,
};
