/* What runs outside of the sandbox: which file, with which words and variables. */
#pragma once

#include "base/err.h"
#include "base/strv.h"

#include <stdbool.h>

struct execution_options;
struct rules;

/* What the call itself sets ("NAME=value"), but for what only changes how things look. */
void outside_variables(const struct execution_options *options, struct strv *ret);

/* The programs of the call, each with the file that its name leads to: "bash = /usr/bin/bash, make =
 * /w/bin/make (which commands can write)". `*ret_is_settled`: nothing in a sandbox can have put any of them
 * there, or changed what a login shell reads first. Caller frees. */
char *outside_programs(const struct execution_options *options, const struct rules *rules,
                       bool *ret_is_settled);

/* The absolute path that argv[0] leads to; NULL: none. Caller frees. */
char *outside_program(const struct execution_options *options);

/* A command that leaves its sandbox by a rule, unasked. */
struct outside {
    char *program;
    struct strv argv;
    struct strv env;
};

/* ERR_FORBIDDEN when it is no longer what was judged. */
int outside_by_rule(const struct execution_options *options, const struct rules *rules,
                    struct outside *ret, struct err *err);
void outside_done(struct outside *outside);

/* The program that answers questions: `name` is a path from `dir`, or is sought in the settled directories of
 * Cordon's own $PATH; its environment. ERR_FORBIDDEN when a command could write it or its interpreter. */
int outside_hook(const char *name, const char *dir, struct outside *ret, struct err *err);

/* The environment of what nobody was asked about: without what has interpreters, shells and the loader run
 * something else, and with a $PATH of settled directories and that of `program` (NULL: none). */
void outside_env(char *const *env, const char *program, struct strv *ret);
