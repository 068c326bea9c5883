/* Parts of a TOML document as a new document. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <jansson.h>

struct toml_node;

/* Appends what the paths (arrays of keys, as strings) name, as one table each; nothing for a path
 * that is not there. ERR_UNSUPPORTED, naming the line, for values that toml.h does not keep. */
int toml_text_select(const struct toml_node *root, const json_t *paths, struct buf *ret,
                     struct err *err);
