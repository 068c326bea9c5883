/* agents/openai.yaml beside a SKILL.md: what the skill needs, and when it may be used. */
#pragma once

#include "base/err.h"

#include <jansson.h>
#include <stddef.h>

/* Sets "dependencies" and "policy" of `skill`, as capabilities/discoverV2 has them; null for what
 * the file does not say. Fails, with both null, when the file is not as it should be. */
int skill_metadata_add(json_t *skill, const char *text, size_t len, struct err *err);

/* Both null. */
void skill_metadata_none(json_t *skill);
