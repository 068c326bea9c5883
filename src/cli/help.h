/* The texts of --help. */
#pragma once

struct command;

/* NULL when there is no such command; the nearest has been named on stderr then. */
const struct command *help_find_command(const char *name);

/* Exit statuses. */
int help_print(void);
int help_print_command(const struct command *command);
