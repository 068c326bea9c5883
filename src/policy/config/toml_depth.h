/* How deep a TOML text nests, measured without parsing it (for toml.cpp). */
#pragma once

#include "base/err.h"

#include <stddef.h>

/* ERR_INVALID, with "LINE: " in front, when arrays and inline tables nest deeper than
 * TOML_DEPTH_MAX or a dotted key has more than TOML_KEY_PARTS_MAX parts. */
int toml_check_depth(const char *text, size_t len, struct err *err);
