/* The subcommands of `cordon`: one file each, which defines one `struct command`; main.c lists
 * them.
 */
#pragma once

#include "cli/options.h"

#include <stdbool.h>

/* What `cordon` exits with when it speaks for itself; `run` otherwise exits with what the command
 * says. 125 as env(1) and timeout(1): a program's own 2 or 64 could not be told from ours. */
enum exit_status {
    EXIT_OK = 0,
    EXIT_NO = 1,            /* asked a question: no; doctor: degraded */
    EXIT_CANNOT = 2,        /* doctor: no sandbox at all */
    EXIT_LEFT = 3,          /* of a layer something was left: each with what to do */
    EXIT_LAYER_REFUSED = 4, /* nothing was done with the layer */
    EXIT_FAILED = 125,      /* Cordon was called wrongly, or could not do it */
    EXIT_REFUSED = 126,     /* run: the command may not be executed */
    EXIT_NOT_FOUND = 127,   /* run: there is no such command */
};

struct command {
    const char *name;
    const char *summary;      /* half a line */
    const char *usage;        /* behind "cordon NAME " */
    const char *const *words; /* one of which comes first behind the name; NULL: anything may */
    const char *about;        /* paragraphs, wrapped on printing; the first is enough for --help */
    const char *examples;
    const char *page;                  /* man page; NULL: cordon(1) */
    const struct option_group *groups; /* ended by one without options */
    int (*run)(char **argv);           /* argv[0] is the command's name; returns the exit status */
};

extern const struct command command_run;
extern const struct command command_explain;
extern const struct command command_learn;
extern const struct command command_script;
extern const struct command command_patch;
extern const struct command command_doctor;
extern const struct command command_layers;
extern const struct command command_changes;
extern const struct command command_diff;
extern const struct command command_accept;
extern const struct command command_drop;
extern const struct command command_undo;
extern const struct command command_serve;
extern const struct command command_mcp;
extern const struct command command_integrate;
extern const struct command command_connect;
extern const struct command command_log;
extern const struct command command_rules;
extern const struct command command_config;
extern const struct command command_presets;
extern const struct command command_version;
extern const struct command command_help;

/* All of them, in the order in which help lists them; NULL-terminated. */
extern const struct command *const commands[];

/* Reads the options of `command` into `data`. False when there is nothing more to do: help was
 * printed, or a wrong option complained about; `*ret_status` is to be returned then. */
bool command_parse(const struct command *command, char **argv, void *data, char ***ret_rest,
                   int *ret_status);

/* For commands whose one option is --json: their data is a bool. */
extern const struct option_group command_json_groups[];

/* One line on stderr; EXIT_FAILED. */
#define console_failf(...) (console_say(__VA_ARGS__), EXIT_FAILED)

/* For commands that take no arguments: complains about the first one, if there is one. */
bool command_has_no_arguments(const struct command *command, char **rest, int *ret_status);

/* The place of the word in command->words; -1: it is none of them, and they are named on stderr. */
int command_find_word(const struct command *command, const char *word);

/* --- help.c --- */

/* NULL when there is no such command; the nearest has been named on stderr then. */
const struct command *help_find_command(const char *name);

/* Print the texts of --help, or, of a command, all that there is to say; return an exit status. */
int help_print(void);
int help_print_command(const struct command *command, bool is_brief);

/* --- helper.c --- */

/* `codex-linux-sandbox`: Codex's helper program, by its flags. `argv` without argv[0]. Returns the
 * exit status: the command's; 1 when it could not be started in the sandbox, 2 for wrong flags, 126
 * and 127 as a shell. A command that a signal ended ends this
 * process by the same signal. */
int helper_main(char **argv);
