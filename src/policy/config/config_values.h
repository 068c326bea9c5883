/* A configuration for people and tools: every value that counts, and where it comes from. */
#pragma once

#include "base/strv.h"

struct config;
struct json_t;

/* [{"key": "audit.trace", "value": [...], "from": "FILE:LINE", or null: the default; "means": in words what
 * it means that nothing is said, where that has no value}]. Tables are told by what is in them. `config`
 * may be NULL: no file. A new reference. */
struct json_t *config_values(const struct config *config);

/* The names of its [permissions.NAME] tables, appended. `config` may be NULL. */
void config_profile_names(const struct config *config, struct strv *ret);

/* A key as TOML writes it: quoted where it has to be. Well-formed UTF-8 stays so. Caller frees. */
char *config_key_text(const char *key);
