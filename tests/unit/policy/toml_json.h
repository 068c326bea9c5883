/* A TOML tree as JSON, so that it can be compared; null stands for fractions, dates and times. */
#pragma once

#include "policy/config/toml.h"

#include <jansson.h>

json_t *toml_to_json(const struct toml_node *node);
