/* A `.rules` file as a sequence of calls with literal arguments. Internal to rules. */
#pragma once

#include "base/err.h"
#include "rules/file/rule.h"

#include <stddef.h>

enum {
    RULE_DEPTH_MAX = 16,        /* nested brackets */
    RULE_ARGUMENTS_MAX = 16,    /* of one call; no function takes that many */
    RULE_NAMES_MAX = 1000,      /* of one file */
    RULE_MEMORY_MAX = 64 << 20, /* bytes of all values of one file: names can double lists */
};

enum rule_value_kind { RULE_VALUE_STRING, RULE_VALUE_LIST };

/* A literal: a string, or a list of literals. Zeroed is valid. */
struct rule_value {
    enum rule_value_kind kind;
    struct rule_place place;
    char *text; /* of a string; else NULL */
    struct rule_value *items;
    size_t len;
    size_t cap;
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
