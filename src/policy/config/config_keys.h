/* Which keys a config file may have: warnings for config.c. */
#pragma once

struct config;

/* Appends a warning for every key that nobody knows, and for what is known to be without effect;
 * about CONFIG_WARNINGS_MAX at most. */
void config_warn_keys(struct config *config);

enum { CONFIG_WARNINGS_MAX = 50 };
