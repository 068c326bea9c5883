/* Path patterns of deny entries, for one path and for a whole tree.
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
#include "policy/host_view.h"

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

/* The pattern is a fixed directory and everything below it: "/a/b/" and two stars. */
bool glob_is_tree(const struct glob *glob);

/* --- step by step, for walking a tree: the set of places in the pattern where a path stands --- */
typedef uint64_t glob_state;

glob_state glob_start(const struct glob *glob); /* at glob_prefix() */
glob_state glob_step(const struct glob *glob, glob_state state, const char *name); /* 0: dead */
bool glob_is_match(const struct glob *glob, glob_state state);
/* A match only if it is a directory: the pattern ends in two stars. */
bool glob_wants_dir(const struct glob *glob);

/* --- text of any pattern --- */

/* `text` has a live pattern character: `*`, `?` or a closed class, not escaped. */
bool glob_has_meta(const char *text);
char *glob_escape(const char *text);    /* a pattern that matches just `text`; caller frees */
char *glob_unescape(const char *text);  /* `\x` becomes `x`; caller frees */
bool glob_has_escape(const char *text); /* has a backslash before one of `*?[]{}\` */

/* --- a whole tree --- */

struct glob_hit {
    char *path;
    enum host_kind kind; /* HOST_HIDDEN: a directory that cannot be listed; never missing */
};

struct glob_hits {
    struct glob_hit *items;
    size_t len;
    size_t cap;
};

void glob_hits_done(struct glob_hits *hits);

struct glob_walk {
    const struct host_view *view;
    const char *root;   /* canonical path of glob_prefix() */
    unsigned max_depth; /* levels below `root`, 0 for no limit */
    size_t matches_max; /* ERR_LIMIT when `hits` would pass it */
    size_t visits_max;  /* ERR_LIMIT when more directory entries than this would be looked at */
};

/* Appends the matches to `hits`, which belongs to the caller also on failure. What lies below a
 * match is not looked at, symlinks are hits but are never followed, and a directory on the way that
 * cannot be read is a hit itself, because what it holds cannot be told apart. */
int glob_expand(const struct glob *glob, const struct glob_walk *walk, struct glob_hits *hits,
                struct err *err);
