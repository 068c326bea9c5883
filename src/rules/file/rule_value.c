/* See rule_value.h. The functions recurse into lists of lists; rule_parse.c, which makes all
 * values, nests them at most RULE_DEPTH_MAX deep. */
#include "rules/file/rule_value.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

void rule_value_done(struct rule_value *value)
{
    for (size_t i = 0; i < value->len; i++)
        rule_value_done(&value->items[i]);
    free(value->items);
    free(value->text);
    *value = (struct rule_value){.kind = RULE_VALUE_STRING};
}

void rule_value_push(struct rule_value *list, struct rule_value item)
{
    list->items = alloc_grow(list->items, list->len, &list->cap, sizeof *list->items);
    list->items[list->len++] = item;
}

struct rule_value rule_value_copy(const struct rule_value *value)
{
    struct rule_value copy = {
        .kind = value->kind, .place = value->place, .text = alloc_str(value->text)};

    for (size_t i = 0; i < value->len; i++)
        rule_value_push(&copy, rule_value_copy(&value->items[i]));
    return copy;
}

size_t rule_value_size(const struct rule_value *value)
{
    size_t size = sizeof *value + (value->text ? strlen(value->text) : 0);

    for (size_t i = 0; i < value->len; i++)
        size += rule_value_size(&value->items[i]);
    return size;
}
