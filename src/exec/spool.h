/* Where the output of a process goes when it no longer fits into memory: a file that only grows, up
 * to a quota, and from which any range can be read back.
 *
 * The file is made when the first byte is written. It has no name, so it is gone with its
 * descriptor, unless a name is asked for: then byte n of the file is byte n of the output. */
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct spool;

struct spool_options {
    const char *folder; /* absolute; NULL: $TMPDIR or /tmp */
    const char *name;   /* in that folder, must not exist yet; NULL: no name */
    uint64_t quota;     /* bytes */
};

enum spool_state {
    SPOOL_NONE,   /* not asked for */
    SPOOL_OK,     /* takes what comes */
    SPOOL_FULL,   /* the quota is reached; what it holds can be read */
    SPOOL_FAILED, /* writing or reading failed: disk full, no such folder, ... */
};

const char *spool_state_name(enum spool_state state); /* "none", "ok", "full", "failed" */

/* Touches no disk. The strings are copied. */
struct spool *spool_new(const struct spool_options *options);
void spool_free(struct spool *spool); /* a named file stays */

/* Appends, and returns how much was written: all of it while the state is SPOOL_OK. */
size_t spool_write(struct spool *spool, const char *bytes, size_t len);

/* Reads exactly `len` bytes at `at`, all of which were written. On failure the state becomes
 * SPOOL_FAILED and the spool counts as empty. */
int spool_read(struct spool *spool, uint64_t at, char *into, size_t len, struct err *err);

uint64_t spool_len(const struct spool *spool); /* bytes that can be read */
enum spool_state spool_state(const struct spool *spool);
int spool_errno(const struct spool *spool); /* why SPOOL_FAILED; else 0 */
