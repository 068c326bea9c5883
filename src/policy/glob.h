/* Path patterns of deny entries (spec/sandboxing.md 1.4.4).
 *
 *     *  ?      any run of characters, one character; never a slash
 *     [a-z_]    one of a class; [!...] and [^...] negate; a "[" that is never closed is itself
 *     \x        the character x
 *     **        as a whole component: any number of components, also none; "DIR/" and two stars
 *               means DIR and everything below it
 *
 * A pattern is absolute here. It is invalid (ERR_INVALID) when empty, relative, with a "." or ".."
 * component, a backslash at its end, a class whose range runs backwards, "{" (alternatives are not
 * supported, and a pattern that silently matches nothing would leave open what it should deny), or
 * more than GLOB_COMPONENTS_MAX components; or when it has no fixed part in front, as one that
 * begins with a star right below "/" would mean a walk over the whole disk.
 *
 * Matching is on bytes, but one UTF-8 character counts as one for `?` and classes. Leading dots are
 * nothing special. Time is bounded by the product of the lengths. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct glob;

enum { GLOB_COMPONENTS_MAX = 62, GLOB_LENGTH_MAX = 4096 };

struct glob *glob_compile(const char *pattern, struct err *err);
void glob_free(struct glob *glob);

/* The clean path that every match begins with: the components before the first with a live
 * character, without escapes. */
const char *glob_prefix(const struct glob *glob);

/* The pattern is a fixed folder and everything below it: "/a/b/" and two stars. */
bool glob_is_tree(const struct glob *glob);

/* The clean path matches. */
bool glob_match(const struct glob *glob, const char *path);

/* --- step by step, for walking a tree: the set of places in the pattern where a path stands --- */
typedef uint64_t glob_state;

glob_state glob_start(const struct glob *glob); /* at glob_prefix() */
glob_state glob_step(const struct glob *glob, glob_state state, const char *name); /* 0: dead */
bool glob_is_match(const struct glob *glob, glob_state state);
/* A match only if it is a folder: the pattern ends in two stars. */
bool glob_wants_folder(const struct glob *glob);
