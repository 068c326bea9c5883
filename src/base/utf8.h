/* UTF-8 as the Unicode Standard defines it (table 3-7: no surrogates, nothing above U+10FFFF, no
 * overlong forms). Texts are given with their length and may hold NUL bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum utf8_kind {
    UTF8_VALID,      /* a whole character */
    UTF8_INVALID,    /* can not become one, whatever follows */
    UTF8_INCOMPLETE, /* the text ends inside a character that is well-formed so far */
};

/* The sequence that `text` (not empty) begins with. `*ret_len` is its length: of the character, or
 * of the "maximal subpart" that one U+FFFD stands for (Unicode 3.9, as WHATWG's decoder does). */
enum utf8_kind utf8_next(const char *text, size_t len, size_t *ret_len);

/* Bytes of the longest valid beginning. `*ret_tail` (may be NULL) is the number of bytes behind it,
 * 1 to 3, when the text only ends inside a character, else 0: a reader of a stream keeps so many
 * bytes for later. */
size_t utf8_valid_len(const char *text, size_t len, size_t *ret_tail);

/* Bytes at the end, 0 to 3, that begin a character and do not complete it, whatever is before. */
size_t utf8_torn_len(const char *text, size_t len);

bool utf8_is_valid(const char *text, size_t len);

/* Appends the text with U+FFFD for every maximal ill-formed subpart, an incomplete end included.
 * false when the buffer's limit would be passed; nothing is appended then. */
bool utf8_append_lossy(struct buf *buf, const char *text, size_t len);

/* Appends one character; false when the buffer's limit would be passed. */
bool utf8_append_character(struct buf *buf, uint32_t c);

/* Where to cut so that at most `max` bytes stay and no valid character is torn. In ill-formed
 * places the cut is at `max` itself. */
size_t utf8_cut(const char *text, size_t len, size_t max);

/* One line that a stranger wrote, for a terminal: ill-formed parts become U+FFFD, and what would let the
 * text show itself as another one its number, "<U+3164>": control characters, what ends a line or turns its
 * direction, what is invisible or looks like a space, what means nothing; and what passes for a Latin letter or a
 * sign of ASCII where those are read: a Cyrillic a in a Latin word, but not a Cyrillic word. Caller frees. */
char *utf8_plain(const char *text);
