/* What config.c and config_keys.c need of approval.c; internal to config.h. */
#pragma once

#include "base/err.h"

struct config;

/* The keys of a granular approval policy; NULL-terminated. */
extern const char *const approval_switches[];

/* Reads `approval_policy` into the config. */
int config_read_approval(struct config *config, struct err *err);
