/* The strict reading of shell_words.h carried on into what the commands of a script run in turn. */
#pragma once

#include "rules/shell/shell_words.h"

/* As shell_script_parse(), for a script that `depth` programs deep runs. */
void shell_script_parse_at(const char *text, size_t len, unsigned depth, struct shell_script *ret);

/* Why a command of a shell is not plain although its words are literal, or NULL. The text is static
 * for ever. `depth` below SHELL_DEPTH_MAX bounds the recursion into scripts of scripts. */
const char *shell_command_objection(const struct shell_command *command, unsigned depth);

/* The same for an argv that is run without a shell, so builtins have no meaning. */
const char *shell_argv_objection(char *const *argv, size_t len);
