/* The beginning and the end of a text of any length, half and half, and the exact number of bytes
 * left out between them. */
#pragma once

#include "output/ring.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

struct headtail {
    struct ring head; /* at most max / 2 bytes; never wraps */
    struct ring tail; /* at most the rest of `max` */
    uint64_t omitted; /* between head and tail */
};

/* Holds at most `max` bytes. Memory grows with the content. */
void headtail_init(struct headtail *headtail, size_t max);
void headtail_done(struct headtail *headtail);

void headtail_add(struct headtail *headtail, const char *bytes, size_t len);

/* `bytes` bytes that are lost come next: they are counted, and the head is closed, so
 * that the marker stands where they are missing. */
void headtail_omit(struct headtail *headtail, uint64_t bytes);

/* Bytes that came, retained and omitted. */
uint64_t headtail_total(const struct headtail *headtail);

/* Between head and tail when something was left out. */
#define HEADTAIL_MARKER "... %" PRIu64 " bytes omitted ..."

/* Appends head and tail as valid UTF-8, with the marker between two newlines when something was
 * left out. U+FFFD stands for what is ill-formed. A character that the gap tears is left out whole;
 * `*ret_omitted`, the number in the marker, counts its bytes too. false when the limit of the
 * buffer is passed; nothing is appended then. */
bool headtail_render(const struct headtail *headtail, struct buf *out, uint64_t *ret_omitted);
