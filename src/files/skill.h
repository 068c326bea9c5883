/* A skill of Codex: what a SKILL.md says of itself (the YAML between the two lines "---" at its
 * beginning), and agents/openai.yaml beside it: what the skill needs, and when it may be used. */
#pragma once

#include "base/err.h"

#include <jansson.h>
#include <stddef.h>

enum { SKILL_NAME_MAX = 64 }; /* characters */

struct skill_text {
    char *name;              /* NULL: it says none */
    char *description;       /* never empty */
    char *short_description; /* NULL: none */
};

/* `text` is valid UTF-8. Each part is one line of text. */
int skill_text_parse(const char *text, size_t len, struct skill_text *ret, struct err *err);
void skill_text_done(struct skill_text *skill);

/* Sets "dependencies" and "policy" of `skill`, as capabilities/discoverV2 has them; null for what
 * the file does not say. Fails, with both null, when the file is not as it should be. */
int skill_metadata_add(json_t *skill, const char *text, size_t len, struct err *err);

/* The text with every run of white space (of Unicode) become one space, and none at the ends.
 * Caller frees; NULL stays NULL. */
char *text_one_line(const char *text);

/* Characters of valid UTF-8. */
size_t text_characters(const char *text);

/* Both null. */
void skill_metadata_none(json_t *skill);
