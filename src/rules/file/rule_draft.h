/* One call of a `.rules` file on its way to a rule. Internal to rules. */
#pragma once

#include "base/err.h"
#include "rules/file/rule_value.h"
#include "rules/file/rules_file.h"

#include <stdbool.h>
#include <stddef.h>

/* Values point into the call. */
struct rule_draft {
    struct rules_file *file; /* where the rule goes when it is whole */
    struct prefix_rule prefix;
    struct host_rule host;
    struct host_program program;
    char *justification;
    const struct rule_value *sandbox; /* NULL: not given */
    enum rule_verdict grant;          /* ... what it says */
    const struct rule_value *match;
    const struct rule_value *not_match;
};

void rule_draft_done(struct rule_draft *draft);

struct rule_parameter {
    const char *name;
    bool is_required; /* those come first, may be given by position, and are set in order */
    int (*set)(struct rule_draft *draft, const struct rule_value *value, struct err *err);
};

enum { RULE_PARAMETERS_MAX = 7 }; /* of one function */

struct rule_function {
    const char *name;
    const struct rule_parameter *parameters; /* ended by one without a name */
    /* All arguments are set: checks what they come to, and adds the rule to the file. */
    int (*finish)(struct rule_draft *draft, struct err *err);
};

extern const struct rule_function rule_function_prefix;  /* prefix_rule */
extern const struct rule_function rule_function_program; /* host_executable */
extern const struct rule_function rule_function_host;    /* network_rule */

/* --- for setters; each error is at the place of the value --- */
int rule_draft_fail(const struct rule_draft *draft, const struct rule_value *value, struct err *err,
                    const char *text);
int rule_draft_want_string(const struct rule_draft *draft, const struct rule_value *value,
                           const char *what, struct err *err);

/* A list with at least one item. */
int rule_draft_want_list(const struct rule_draft *draft, const struct rule_value *value,
                         const char *what, struct err *err);

/* The index of the value among the NULL-terminated words. */
int rule_draft_word(const struct rule_draft *draft, const struct rule_value *value,
                    const char *const *words, size_t *ret, struct err *err);

/* The setter for "justification". */
int rule_draft_justification(struct rule_draft *draft, const struct rule_value *value,
                             struct err *err);
