/* Permission profiles in JSON, in every shape that is found on the wire and in older files,
 * and one canonical shape out. */
#pragma once

#include "base/err.h"
#include "policy/profile.h"

#include <jansson.h>

struct strv;

/* Any of: the tagged PermissionProfile (managed, disabled, external), the older untagged one
 * ({"network": {"enabled": ..}, "file_system": {..}}), and the legacy SandboxPolicy in kebab/snake
 * or camelCase. Errors (ERR_INVALID) start with the JSON path.
 *
 * `ignored`: unknown keys of the tagged shape, which newer programs may send, are appended to it
 * as JSON paths; with NULL they are errors. The other shapes are closed and never have any.
 * Additions of ours to the tagged shape: network "proxied" and "host", `network_policy` (network_policy_from_json()), `allow_nested_namespaces`,
 * `watch`, `judge` and `unix_sockets`; and to an entry that denies a path: `ask`. */
int profile_from_json(const json_t *value, struct strv *ignored, struct profile *ret,
                      struct err *err);

/* profile_from_json() on text: "line 2, column 5: ..." for a syntax error. */
int profile_parse(const char *text, size_t len, struct strv *ignored, struct profile *ret,
                  struct err *err);

/* The tagged shape; profile_from_json() of it gives an equal profile (ids and origins do not
 * travel). A path that is not UTF-8 becomes a file URI. New reference. */
json_t *profile_to_json(const struct profile *profile);

/* AdditionalPermissionProfile, snake_case or camelCase, null parts allowed; unknown keys are
 * errors. The result is not normalised. */
int profile_overlay_from_json(const json_t *value, struct profile_overlay *ret, struct err *err);
