/* Checks a plan file before anything in it is used. */
#pragma once

#include "sandbox/launcher/plan_format.h"

#include <stddef.h>

struct plan_view {
    const struct plan_header *header;
    const struct plan_record *records;
    const struct plan_filter *filters;
    const char *strings;
};

/* Views `bytes` of memory as a plan. Every count, offset and string of the result is in bounds;
 * the memory must stay. ERR_INVALID says what is wrong with a plan that is not one. */
int plan_view_init(struct plan_view *ret, const void *memory, size_t bytes, struct err *err);

/* The string at an offset that plan_view_init() has checked. */
const char *plan_string(const struct plan_view *plan, uint32_t offset);

/* The string behind `text` in a run of strings. */
const char *plan_string_next(const char *text);
