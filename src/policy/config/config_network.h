/* For config_profile.c: what a profile says of the network. */
#pragma once

#include "base/err.h"

struct config_chain;
struct profile;

/* Into the empty `ret`; `home` as in config_profile(). */
int config_network_read(const struct config_chain *chain, const char *home, struct profile *ret,
                        struct err *err);
