/* Texts and numbers one after the other, each with a NUL behind it: the form of what we keep in a layer's folder
 * (known.c, journal.c). */
#pragma once

#include "base/buf.h"
#include "layer/change.h"

#include <stdbool.h>
#include <stdint.h>

bool record_put(struct buf *text, const char *value);
bool record_put_number(struct buf *text, uint64_t value);
bool record_put_stamp(struct buf *text, const struct change_stamp *stamp);

struct records {
    const char *next;
    const char *end;
};

/* NULL at the end, and before one that was not written whole. */
const char *record_take(struct records *records);
bool record_take_number(struct records *records, uint64_t *ret);
bool record_take_stamp(struct records *records, struct change_stamp *ret);
