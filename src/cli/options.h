/* Options of a command, as tables: what is parsed, what --help says, and what completions and man
 * pages are checked against (`cordon help --json`) come from the same lines.
 *
 *     --name VALUE   --name=VALUE   -n VALUE   -nVALUE   --flag   -f
 *
 * Options end at the first argument that is none, or behind "--": what follows belongs to the
 * command that is to be run, and is not looked at. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

struct buf;

struct option {
    const char *name;         /* without "--" */
    char letter;              /* its short form, 0 without one */
    const char *value;        /* what stands for the value in texts, "DIR"; NULL: takes none */
    const char *const *words; /* the only values that are taken, NULL-terminated; NULL: any */
    const char *help;         /* sentences */
    /* What the option does; `data` is the command's, `value` is borrowed from argv and lives as
     * long as the program; NULL for an option without one. Called once for every time it is given,
     * in order. An error need not say which option it is about. */
    int (*set)(void *data, const char *value, struct err *err);
};

struct option_group {
    const char *title;            /* "Permissions" */
    const struct option *options; /* ended by one without a name */
};

struct options_rest {
    char **argv;     /* what follows the options; NULL-terminated, part of the argv given */
    bool wants_help; /* --help or -h was among them; what follows it was not read */
};

/* `groups` end with one without options. ERR_INVALID for an option that there is not (the message
 * names the nearest), a value that is missing or not allowed, or what `set` says. */
int options_parse(const struct option_group *groups, char **argv, void *data,
                  struct options_rest *ret, struct err *err);

/* The group titles, options and their help, wrapped to 80 columns. */
void options_print(const struct option_group *groups, struct buf *ret);

/* Appends the text, wrapped to 80 columns and indented; ends with a line feed. Lines that begin
 * with a space are not wrapped. */
void options_print_text(const char *text, unsigned indent, struct buf *ret);
