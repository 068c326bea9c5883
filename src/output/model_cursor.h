/* What a model has not been shown yet: each byte is given out once, bounded to the beginning and
 * the end of what came since the last time (docs/model-calls.md). */
#pragma once

#include "output/headtail.h"
#include "output/output.h"

struct model_cursor;

#define MODEL_CURSOR_MAX_DEFAULT OUTPUT_MEMORY_DEFAULT

/* From the beginning of the output on. `max`: bytes that a take gives at most. */
struct model_cursor *model_cursor_new(struct output *output, size_t max);
void model_cursor_free(struct model_cursor *cursor); /* before the output */

/* Takes everything since the last call. `ret` is initialised here; headtail_done() by the caller.
 * Until the output has ended, the beginning of a character stays for the next time. */
void model_cursor_take(struct model_cursor *cursor, struct headtail *ret);

/* Bytes that came since the last call, those included that it has held back. */
uint64_t model_cursor_len(const struct model_cursor *cursor);
