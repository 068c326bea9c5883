/* What the shells themselves understand under a name: reserved words and builtins of bash 5.2, dash
 * 0.5.12 and zsh 5.9. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Why a command that a shell runs cannot be taken for what its words say: its name is a reserved
 * word; or a builtin that changes what later words mean, runs its words as a script, or evaluates
 * them as names or arithmetic (where `a[$(x)]` runs x). NULL when there is nothing against it.
 * `exact` as in struct shell_command; the text is static. */
const char *shell_builtin_objection(char *const *words, size_t len, size_t exact);

/* A builtin of every shell that only prints or changes the folder: cd, echo, false, pwd, true, :.
 */
bool shell_builtin_is_harmless(const char *name);
