/* `cordon help`, `cordon help COMMAND` (everything), `cordon COMMAND --help` (about a screen): all from
 * the commands' tables; and what every command does with its arguments first.
 *
 * `cordon help --json` gives the tables themselves. The shell completions are generated from it
 * (completions/generate), the tests compare the man pages with it, and other programs may use it. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "base/strv.h"
#include "cli/command.h"
#include "cli/connect.h"
#include "cli/console.h"

#include <stdint.h>
#include <string.h>

static const char about_cordon[] =
    "Cordon runs a command in a sandbox: it may read what you can read, write only below the "
    "current directory and in the temporary directories, and reach no network but its own "
    "localhost. What was refused is said, with the option that would allow it.\n";

static const char examples_cordon[] =
    "  cordon run -- make test               build and test here; nothing else is written\n"
    "  cordon run --allow-host registry.example.org --with npm -- npm install\n"
    "  cordon run --profile read-only -- grep -r secret /etc\n"
    "  cordon explain --path ~/.ssh/id_ed25519        may a command read this, and why\n"
    "  cordon doctor                         what this machine can enforce, and what to fix\n";

const struct command *help_find_command(const char *name)
{
    AUTO(strv_done) struct strv names = {0};
    const char *nearest;

    for (size_t i = 0; commands[i]; i++) {
        if (str_eq(commands[i]->name, name))
            return commands[i];
        strv_push(&names, commands[i]->name);
    }
    nearest = str_nearest(name, (const char *const *)strv_view(&names));
    if (connect_find_command(name))
        console_say("there is no command \"%s\"; of a server there is: cordon connect %s", name,
                    name);
    else if (nearest)
        console_say("there is no command \"%s\"; did you mean \"%s\"? (\"cordon help\" lists them)",
                    name, nearest);
    else
        console_say("there is no command \"%s\" (\"cordon help\" lists them; to run a program: "
                    "cordon run -- %s)",
                    name, name);
    return NULL;
}

/* Examples come first: they are what most who ask came for. */
int help_print_command(const struct command *command, bool is_brief)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    const char *page = command->page ? command->page : "cordon";
    const char *end = is_brief ? strstr(command->about, "\n\n") : NULL;
    AUTO_FREE char *about = end ? alloc_strn(command->about, (size_t)(end - command->about))
                                : alloc_str(command->about);

    buf_appendf(&text, "Usage: cordon %s%s%s\n\n", command->name, *command->usage ? " " : "",
                command->usage);
    options_print_text(command->examples, 0, &text);
    buf_append_str(&text, "\n");
    options_print_text(about, 0, &text);
    options_print(command->groups, is_brief, &text);
    if (is_brief)
        buf_appendf(&text, "\nMore: cordon help %s, man %s\n", command->name, page);
    else
        buf_appendf(&text, "\nMore: man %s\n", page);
    return console_print(&text);
}

int help_print(void)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};

    buf_append_str(&text, "Usage: cordon COMMAND [OPTION]... [ARGUMENT]...\n\n");
    options_print_text(about_cordon, 0, &text);
    buf_append_str(&text, "\nCommands:\n");
    for (size_t i = 0; commands[i]; i++)
        buf_appendf(&text, "  %-9s %s\n", commands[i]->name, commands[i]->summary);
    buf_append_str(&text, "\nExamples:\n");
    options_print_text(examples_cordon, 0, &text);
    buf_append_str(&text, "\nMore: cordon help COMMAND, man cordon\n");
    return console_print(&text);
}

static json_t *words_to_json(const char *const *words)
{
    json_t *list = words ? json_array() : json_null();

    for (size_t i = 0; words && words[i]; i++)
        json_array_append_new(list, json_string(words[i]));
    return list;
}

static json_t *option_to_json(const struct option *option)
{
    return json_pack("{s:s, s:o, s:o, s:b, s:o, s:s}", "name", option->name, "letter",
                     option->letter ? json_stringn(&option->letter, 1) : json_null(), "value",
                     json_lossy(option->value), "optional", option->may_lack, "words",
                     words_to_json(option->words), "help", option->help);
}

static int help_print_json(void)
{
    json_t *list = json_array();
    AUTO_JSON json_t *json = json_pack("{s:o}", "commands", list);

    for (size_t i = 0; commands[i]; i++) {
        json_t *options = json_array();

        for (const struct option_group *group = commands[i]->groups; group->options; group++)
            for (const struct option *option = group->options; option->name; option++)
                json_array_append_new(options, option_to_json(option));
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:o, s:o}", "name", commands[i]->name, "summary",
                            commands[i]->summary, "usage", commands[i]->usage, "words",
                            words_to_json(commands[i]->words), "options", options));
    }
    return console_print_json(json);
}

/* --- the command --- */

static const struct option help_options[] = {
    {.name = "json",
     .help = "Prints the commands and their options as one JSON value.",
     .kind = OPTION_TRUE},
    {.name = NULL},
};

static const struct option_group help_groups[] = {{"Options", help_options}, {NULL, NULL}};

static int help_run(char **argv)
{
    bool wants_json = false;
    const struct command *command;
    char **rest;
    int status;

    if (!command_parse(&command_help, argv, &wants_json, &rest, &status))
        return status;
    if (wants_json)
        return help_print_json();
    if (!*rest)
        return help_print();
    command = str_eq(*rest, "connect") && rest[1] ? connect_find_command(rest[1]) : NULL;
    if (!command)
        command = help_find_command(*rest);
    return command ? help_print_command(command, false) : EXIT_FAILED;
}

const struct command command_help = {
    .name = "help",
    .summary = "explain a command",
    .usage = "[--json] [COMMAND]...",
    .about = "Explains Cordon, or one of its commands.\n",
    .examples = "  cordon help run\n",
    .groups = help_groups,
    .run = help_run,
};

static const struct option json_options[] = {
    {.name = "json", .letter = 'j', .kind = OPTION_TRUE, .help = "Prints one JSON value."},
    {.name = NULL},
};

const struct option_group command_json_groups[] = {{"Options", json_options}, {NULL, NULL}};

bool command_parse(const struct command *command, char **argv, void *data, char ***ret_rest,
                   int *ret_status)
{
    struct options_rest rest;
    struct err err;

    if (options_parse(command->groups, argv + 1, data, &rest, &err)) {
        console_say("%s (\"cordon help %s\" lists all)", err.msg, command->name);
        *ret_status = EXIT_FAILED;
        return false;
    }
    if (rest.wants_help) {
        *ret_status = help_print_command(command, true);
        return false;
    }
    *ret_rest = rest.argv;
    return true;
}

bool command_has_no_arguments(const struct command *command, char **rest, int *ret_status)
{
    if (!*rest)
        return true;
    console_say("cordon %s takes no argument like \"%s\"", command->name, *rest);
    *ret_status = EXIT_FAILED;
    return false;
}

int command_find_word(const struct command *command, const char *word)
{
    AUTO(buf_done) struct buf all = {.max = SIZE_MAX / 2};
    const char *nearest = str_nearest(word, command->words);

    for (int i = 0; command->words[i]; i++) {
        if (str_eq(command->words[i], word))
            return i;
        buf_appendf(&all, "%s%s",
                    !i                      ? ""
                    : command->words[i + 1] ? ", "
                                            : " and ",
                    command->words[i]);
    }
    console_say("there is no \"cordon %s %s\"%s%s%s; there are %s", command->name, word,
                nearest ? " (did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?)" : "",
                all.data);
    return -1;
}
