/* Patterns for one path component (policy/glob.h has the rules), and their text. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

/* ERR_INVALID when the component of a pattern is not a good one. */
int glob_name_check(const char *part, struct err *err);

bool glob_name_match(const char *pattern, const char *name);

/* --- text of any pattern --- */

/* `text` has a live pattern character: `*`, `?` or a closed class, not escaped. */
bool glob_has_meta(const char *text);
char *glob_escape(const char *text);    /* a pattern that matches just `text`; caller frees */
char *glob_unescape(const char *text);  /* `\x` becomes `x`; caller frees */
bool glob_has_escape(const char *text); /* has a backslash before one of `*?[]{}\` */
