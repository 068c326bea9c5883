/* What a model has not been shown yet: each byte is given out once, bounded to the beginning and
 * the end of what came since the last time (spec/unified-exec.md 6 and 7). */
#pragma once

#include "exec/headtail.h"
#include "exec/output.h"

struct unread;

#define UNREAD_MAX OUTPUT_MEMORY_DEFAULT

/* From the beginning of what the output holds now. `max`: bytes, of which the first half is kept
 * here when the output cannot keep it. */
struct unread *unread_new(struct output *output, size_t max);
void unread_free(struct unread *unread); /* before the output */

/* Takes everything since the last call; `ret` is initialised here (headtail_done() by the caller)
 * and holds at most `max` bytes. Until the output has ended, the beginning of a character that is
 * not complete stays for the next time. */
void unread_take(struct unread *unread, struct headtail *ret);

/* Bytes that the next unread_take() would account for, more or less what is held back. */
uint64_t unread_len(const struct unread *unread);
