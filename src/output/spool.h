/* Where the output of a process goes when it no longer fits into memory: a file that only grows, up
 * to a quota, and from which any range can be read back.
 *
 * The file is made when the first byte is written. It has no name, so it is gone with its
 * descriptor, unless a name is asked for; then the directory must not be one that the command can
 * write to. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spool;

struct spool_options {
    const char *dir;  /* absolute; NULL: $TMPDIR or /tmp */
    const char *name; /* in that directory, must not exist yet; NULL: no name */
    uint64_t quota;   /* bytes */
};

enum spool_state {
    SPOOL_NONE,   /* not asked for */
    SPOOL_OK,     /* takes what comes */
    SPOOL_FULL,   /* the quota is reached; what it holds can be read */
    SPOOL_FAILED, /* a system call failed: disk full, no such directory, ... */
};

/* Touches no disk. The strings are copied. */
struct spool *spool_new(const struct spool_options *options);
void spool_free(struct spool *spool); /* a file with a name stays */

/* Appends all of it, or as much as the quota and the disk take: false then, and the state is no
 * longer SPOOL_OK. Once that is so nothing is written any more. */
bool spool_write(struct spool *spool, const char *bytes, size_t len);

/* Reads `len` bytes at `at`, which lie below spool_len(). false when that fails: the state is
 * SPOOL_FAILED then, and the spool counts as empty. */
bool spool_read(struct spool *spool, uint64_t at, char *into, size_t len);

/* Gives up as if a call had failed with `error`; what was written can still be read. */
void spool_fail(struct spool *spool, int error);

uint64_t spool_len(const struct spool *spool);           /* bytes that can be read; NULL: 0 */
enum spool_state spool_state(const struct spool *spool); /* NULL: SPOOL_NONE */
int spool_errno(const struct spool *spool);              /* why SPOOL_FAILED; else 0 */
