/* POSIX extended regular expressions over bytes, in time linear in the text whatever the pattern.
 *
 * regcomp(3) is not for patterns of strangers: glibc 2.36 takes 7 s for `(a|b)*a(a|b){12}x` over 16
 * KiB, and `((a{1,100}){1,100}){1,50}` takes all memory.
 *
 * The syntax is the one of POSIX.1-2017 XBD 9.4, without collating symbols, with these escapes on
 * top: \d \w \s \D \W \S (one byte of a class), \b \B (at a word's edge, or not), \t. A byte beyond
 * ASCII stands for itself; "." is any one byte.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct ere;

#define ERE_PATTERN_MAX 1024 /* bytes */
#define ERE_PROGRAM_MAX 4096 /* steps, after {m,n} is written out */
#define ERE_DEPTH_MAX 64     /* of groups */

/* ERR_INVALID, with the position, for a pattern that is malformed or too large. */
struct ere *ere_new(const char *pattern, struct err *err);
void ere_free(struct ere *ere);

enum {
    ERE_NOT_BEGIN = 1, /* the text does not begin where a line does: ^ does not match there */
    ERE_NOT_END = 2,
};

struct ere_span {
    size_t at;
    size_t len;
};

/* The leftmost match, and of those the longest. */
bool ere_find(struct ere *ere, const char *text, size_t len, unsigned flags,
              struct ere_span *ret_span);
