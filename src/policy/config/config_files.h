/* [permissions.NAME.filesystem] for config_profile.c. */
#pragma once

#include "base/err.h"
#include "policy/profile.h"

struct config_chain;

/* Adds an entry for every key of the merged tables to `ret`. `home` as in config_profile(). */
int config_files(const struct config_chain *chain, const char *home, struct profile *ret,
                 struct err *err);
