/* Waits for a plain text in output that comes in pieces, per stream; each byte is looked at a
 * bounded number of times and none is stored. */
#pragma once

#include "base/err.h"
#include "output/stream.h"

#include <stdbool.h>
#include <stddef.h>

struct match;

#define MATCH_TEXT_MAX 4096 /* bytes */

/* ERR_INVALID for an empty text or one beyond MATCH_TEXT_MAX. */
struct match *match_new(const char *text, size_t len, struct err *err);
void match_free(struct match *match);

/* True when the text ends within these bytes: `*ret_len` (may be NULL) of them belong to what was
 * searched. What follows may be fed again to find the next one. */
bool match_feed(struct match *match, enum stream stream, const char *bytes, size_t len,
                size_t *ret_len);

/* Bytes are missing here: nothing found before them goes on behind them. */
void match_reset(struct match *match);
