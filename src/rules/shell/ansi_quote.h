/* $'...' of bash(1), QUOTING. */
#pragma once

#include "base/buf.h"

/* Appends what the text up to the closing quote stands for; `text` begins behind the opening one.
 * Returns the bytes read, with the quote if there is one. */
size_t ansi_quote_read(const char *text, size_t len, struct buf *ret);
