/* Small helpers on C strings. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

bool str_eq(const char *a, const char *b);
bool str_starts(const char *text, const char *prefix);
bool str_ends(const char *text, const char *suffix);

/* Shell-style wildcards `*` and `?` over the whole text; ASCII case ignored by the second. Linear in the
 * product of the lengths at worst, no recursion. */
bool str_match(const char *pattern, const char *text);
bool str_match_nocase(const char *pattern, const char *text);

/* The entry of the NULL-terminated `names` nearest to `text` (inserting, deleting, replacing and
 * swapping neighbours count one each) within a third of its length (of a short one: within one), else the only
 * one that it begins, but for its last letter. NULL: none. Texts longer than 64 bytes are near to nothing.
 * For "did you mean". */
const char *str_nearest(const char *text, const char *const *names);
