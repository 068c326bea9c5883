/* Paths in the text around an error message. Internal to exec; part of denial_line.h. Pure. */
#pragma once

#include <stddef.h>

struct denial_clue;
struct strv;

/* Looks around the error, the `len` bytes at `at` of `text`, and appends to the clue's paths, or to
 * its names when there is no path. */
void denial_paths_around(const char *text, size_t at, size_t len, struct denial_clue *clue);

/* Appends the paths in quotes. */
void denial_paths_quoted(const char *text, struct strv *paths);
