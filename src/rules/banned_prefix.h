/* Prefixes that are never proposed as a rule, because they would allow nearly anything. A person
 * may still write such a rule. */
#pragma once

#include <stdbool.h>

/* The whole prefix (NULL-terminated) is one of them; a longer one, like an interpreter with its
 * script, is not. Source: spec/exec-core.md 6.2. */
bool prefix_is_banned(char *const *prefix);
