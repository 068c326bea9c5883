/* One `.rules` file as values: its rules, its programs, and the examples that it has to live up to.
 * rules.h is the face of all of them together. */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "rules/file/rule.h"

#include <stdbool.h>
#include <stddef.h>

struct rules_origin {
    enum rule_layer layer;
    const char *file; /* as it is named in messages; outlives what is made of it */
    const char *home; /* for "~/" of host_executable; NULL when not known */
};

/* A command that a rule says it matches, or does not. */
struct rule_example {
    size_t rule; /* index of its prefix rule */
    bool is_match;
    struct strv words;
    struct rule_place place;
};

struct rules_file {
    struct rules_origin origin;
    struct prefix_rule *prefixes;
    size_t prefixes_len;
    size_t prefixes_cap;
    struct host_rule *hosts;
    size_t hosts_len;
    size_t hosts_cap;
    struct host_program *programs;
    size_t programs_len;
    size_t programs_cap;
    struct rule_example *examples; /* of one rule, those that must not match come first */
    size_t examples_len;
    size_t examples_cap;
};

void rules_file_done(struct rules_file *file);

/* These take over what they are given, which is then empty. A program replaces what the same layer
 * said about the name before; another layer's entry stays: both then have to list a path, so that
 * neither widens what the other allows. */
void rules_file_take_prefix(struct rules_file *file, struct prefix_rule *rule);
void rules_file_take_host(struct rules_file *file, struct host_rule *rule);
void rules_file_take_program(struct rules_file *file, struct host_program *program);

/* Reads the text; examples are not checked yet. ERR_INVALID with "FILE:LINE:COLUMN: ", what is
 * wrong, and what would be right; `ret` then holds what stands before that. `ret` is overwritten.
 */
int rules_file_parse(const struct rules_origin *origin, const char *text, size_t len,
                     struct rules_file *ret, struct err *err);

/* ERR_INVALID when the example does not hold. */
int rules_file_check_example(const struct rules_file *file, const struct rule_example *example,
                             struct err *err);

/* All of them; the first that does not hold. */
int rules_file_check(const struct rules_file *file, struct err *err);

/* The words of a command as POSIX shells split them, without anything that they would expand.
 * Appends to `ret`; NULL, or what is wrong (static). */
const char *rule_words_split(const char *text, struct strv *ret);
