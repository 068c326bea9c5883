/* The entries of a permission profile in JSON (spec/sandboxing.md 1.3), for profile_json.c. */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "policy/profile.h"

#include <jansson.h>

struct strv;

enum { ENTRY_JSON_MAX = 4096 /* entries in one list */ };

/* Appends what the array `at` holds; each origin is the JSON path of the entry. `ignored` as in
 * profile_from_json(). */
int entries_from_json(const struct json_at *at, struct strv *ignored,
                      struct profile_entries *entries, struct err *err);

/* Appends one entry with `access` for every path in the array `at`; missing and null are empty. */
int entries_from_json_paths(const struct json_at *at, enum access access,
                            struct profile_entries *entries, struct err *err);

/* New reference. */
json_t *entries_to_json(const struct profile_entries *entries);

/* The field under its snake_case or its camelCase name (NULL: there is none). Both at once fail. */
int json_field_either(const struct json_at *at, const char *snake, const char *camel,
                      struct json_at *ret, struct err *err);
