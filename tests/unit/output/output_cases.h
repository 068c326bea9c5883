/* Bytes in cases: a string, {"hex": "e282"}, {"repeat": "ab", "times": 3}, or an array of these. */
#pragma once

#include "../base/cases.h"

struct buf;
struct headtail;

/* Appends the bytes; a failure of the test when they are not in one of these forms. */
void case_bytes(const json_t *json, struct buf *ret);

/* Adds each item of an array as one chunk; {"omit": n} is headtail_omit(). */
void case_fill(const json_t *json, struct headtail *ret);

uint64_t case_number(const json_t *object, const char *key, uint64_t otherwise);

/* Text with its bytes beyond ASCII and its control characters readable, for comparing. */
void assert_bytes(const char *got, size_t got_len, const char *wanted, size_t wanted_len);
