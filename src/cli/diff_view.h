/* What changed in a file, for a person: `diff -u` in colours, and with nothing in it that a terminal obeys. */
#pragma once

#include "cli/change_view.h"
#include "layer/diff.h"

#include <stdbool.h>
#include <stddef.h>

struct buf;

/* Text in the form of git diff. `is_plain`: for a terminal: what is in the lines is shown, and commands nothing; else the
 * bytes are those of the files, for patch(1). */
void diff_text_print(const char *text, size_t len, const struct ink *ink, bool is_plain,
                     struct buf *ret);

/* All of one change: its marks as a comment, then the text, or what there is to say of what is none. */
int diff_change_print(const struct change_view *view, const struct change *change, bool is_plain,
                      struct buf *ret, struct err *err);
