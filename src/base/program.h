/* The programs of Cordon's that other programs of Cordon's start: where they lie. */
#pragma once

#include "base/err.h"
#include "base/strv.h"

/* The path of the running program; "" when /proc cannot be read. Caller frees. */
char *program_self(void);

/* The path of the program of this name ("cordon-files"), absolute and clean; the caller frees. NULL
 * and ERR_NOT_FOUND when there is none that can be executed. */
char *program_find(const char *name, struct err *err);

/* Executes the program of this name with these arguments. Returns -1 when that fails. */
int program_exec(const char *name, char *const *argv, struct err *err);

/* Adds every path at which program_find() looks for any of them, and the directories of what comes with them. */
void program_add_paths(struct strv *ret);

/* Appends the directories in which data of Cordon's of this name ("presets") may lie, in the order in which
 * they count; those that are not there, too. */
void program_data_dirs(const char *name, struct strv *ret);
