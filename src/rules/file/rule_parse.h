/* A `.rules` file as a sequence of calls with literal arguments. Internal to rules. */
#pragma once

#include "base/err.h"
#include "rules/file/rule_value.h"

#include <stddef.h>

enum {
    RULE_DEPTH_MAX = 16,        /* nested brackets */
    RULE_ARGUMENTS_MAX = 16,    /* of one call; no function takes that many */
    RULE_NAMES_MAX = 1000,      /* of one file */
    RULE_MEMORY_MAX = 64 << 20, /* bytes of all values that one file makes: names can double lists
                                 */
};

struct rule_argument {
    char *name; /* NULL: given by position */
    struct rule_place place;
    struct rule_value value;
};

struct rule_call {
    char *name;
    struct rule_place place;
    struct rule_argument arguments[RULE_ARGUMENTS_MAX];
    size_t len;
};

struct rule_parse {
    const char *file; /* in messages */
    const char *text;
    size_t len;
    /* Takes each call in order; a failure ends the parsing. The call is borrowed. */
    int (*on_call)(void *data, const struct rule_call *call, struct err *err);
    void *data;
};

/* ERR_INVALID with "FILE:LINE:COLUMN: ", what is wrong, and what would be right. */
int rule_parse(const struct rule_parse *parse, struct err *err);
