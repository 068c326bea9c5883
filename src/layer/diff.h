/* Differences of two texts by lines (Myers), and of the two sides of a change. Pure but for change_diff(). */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "layer/change.h"

#include <stdbool.h>
#include <stddef.h>

/* Lines of the old text that are replaced by lines of the new one; numbers from 0. */
struct hunk {
    size_t old_at, old_len;
    size_t new_at, new_len;
};

struct hunks {
    struct hunk *items;
    size_t len;
    size_t cap;
};

/* Texts of up to DIFF_MAX bytes. Where they differ too much to be worth the time it is one hunk. */
enum { DIFF_MAX = 1 << 20 };
void diff_lines(const char *old, size_t old_len, const char *text, size_t len, struct hunks *ret);
void hunks_done(struct hunks *hunks);

/* The old text with just the hunks for which `takes` holds, which gets their number. */
void diff_apply(const char *old, size_t old_len, const char *text, size_t len,
                const struct hunks *hunks, bool (*takes)(void *data, size_t hunk), void *data,
                struct buf *ret);

/* As `diff -u` writes it, with "\ No newline at end of file". */
void diff_unified(const char *old, size_t old_len, const char *text, size_t len,
                  const struct hunks *hunks, size_t context, struct buf *ret);

struct change_diff {
    bool is_binary;    /* or too large, or no file: then no text, but sizes and digests */
    bool is_truncated; /* at max_bytes, at the end of a line */
    struct buf
        unified; /* as git diff writes it, with its header: modes, renames, links as their text */
    uint64_t old_size, new_size;
    char old_sha256[65], new_sha256[65]; /* "" where there is none */
};

/* `context` lines; `max_bytes` 0: no limit. The caller calls change_diff_done(). */
int change_diff(const struct layer *layer, const struct change *change, size_t context,
                size_t max_bytes, struct change_diff *ret, struct err *err);
void change_diff_done(struct change_diff *diff);
