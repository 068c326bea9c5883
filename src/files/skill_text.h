/* What a SKILL.md says of itself: the YAML between the two lines "---" at its beginning. */
#pragma once

#include "base/err.h"

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
