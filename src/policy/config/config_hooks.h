/* For config_profile.c: [permissions.NAME.network.credentials] and mitm.hooks, mitm.actions. */
#pragma once

#include "base/err.h"

#include <stddef.h>

struct config;
struct network_policy;
struct toml_node;

/* The tables of a profile and of those that it extends, the nearest first, which counts. */
struct config_levels {
    const struct config *config;
    const struct toml_node *const *items;
    size_t len;
};

int config_read_hooks(const struct config_levels *levels, struct network_policy *ret,
                      struct err *err);
