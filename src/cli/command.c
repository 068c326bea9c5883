/* See command.h. What every command does with its arguments first. */
#include "cli/command.h"

#include "cli/console.h"
#include "cli/help.h"

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
        *ret_status = help_print_command(command);
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
