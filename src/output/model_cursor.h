/* What a model has not been shown yet: each byte is given out once, bounded to the beginning and
 * the end of what came since the last time (spec/unified-exec.md 6 and 7). */
#pragma once

#include "output/headtail.h"
#include "output/output.h"

struct unread;

#define UNREAD_MAX_DEFAULT OUTPUT_MEMORY_DEFAULT

/* From the beginning of the output on. `max`: bytes that a take gives at most. */
struct unread *unread_new(struct output *output, size_t max);
void unread_free(struct unread *unread); /* before the output */

/* Takes everything since the last call. `ret` is initialised here; headtail_done() by the caller.
 * Until the output has ended, the beginning of a character stays for the next time. */
void unread_take(struct unread *unread, struct headtail *ret);

/* Bytes that came since the last call, those included that it has held back. */
uint64_t unread_len(const struct unread *unread);
