/* A literal of a `.rules` file: a string, or a list of literals. Internal to rules. */
#pragma once

#include "rules/file/prefix_rule.h"

#include <stddef.h>

enum rule_value_kind { RULE_VALUE_STRING, RULE_VALUE_LIST };

struct rule_value {
    enum rule_value_kind kind;
    struct rule_place place;
    char *text; /* of a string; else NULL */
    struct rule_value *items;
    size_t len;
    size_t cap;
};

void rule_value_done(struct rule_value *value);
struct rule_value rule_value_copy(const struct rule_value *value);

/* Takes `item` over. */
void rule_value_push(struct rule_value *list, struct rule_value item);

/* Bytes that a copy takes, about. */
size_t rule_value_size(const struct rule_value *value);
