/* Plugins and skills as capabilities/discoverV2 tells of them, made of what lies in a folder. */
#pragma once

#include <jansson.h>

struct found;
struct plugin;

/* An array; new reference. What is no skill is left out, with a warning of `found`. */
json_t *capability_skills(struct found *found);

/* With these skills. New reference; NULL when it is no plugin, with a warning. */
json_t *capability_plugin(struct found *found, const struct plugin *plugin, json_t *skills);
