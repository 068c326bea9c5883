/* What two profiles both allow: ours, and one that somebody sends who is not trusted to widen it (the sandbox of a client that
 * has one of its own). The result is never wider than either, in any path, host or other respect.
 *
 *     profile_narrow(&ours, &theirs, err)       all that a profile says but its entries
 *     profile_resolve_narrowed()                and the entries, as what they mean on this host
 *     network_policy_narrow()                   when rules came to the map's policy behind it
 *
 * Entries are narrowed as literal paths, because only they can be: what ":workspace_roots" of one and a glob of the other have
 * in common has no text. */
#pragma once

#include "base/err.h"

/* How the origins of entries of such a profile begin: what they refuse is not allowed by anything here. */
#define PROFILE_OF_CLIENT "the client's own sandbox"

struct access_map;
struct network_policy;
struct profile;
struct resolve_context;

/* `ours` that has no sandbox gets one, unless `theirs` has none either; with `theirs` external, the network alone is narrowed. */
int profile_narrow(struct profile *ours, const struct profile *theirs, struct err *err);

/* What both mean in the same context. Whose temporary folders are private is ours to say: `theirs` is about those of the host.
 * `theirs` NULL: there is none, and only what `context->within` says is narrowed. */
int profile_resolve_narrowed(const struct profile *ours, const struct profile *theirs,
                             const struct resolve_context *context, struct access_map *ret,
                             struct err *err);

/* Of two sorted maps, each resolved for the profile that profile_narrow() was given. What lies in a private temporary folder of
 * ours is not what `theirs` is about. */
void access_map_narrow(struct access_map *ours, const struct access_map *theirs);

/* Of two networks that are proxied. A rule stays that the other policy allows wholly; one that it allows in part goes. */
int network_policy_narrow(struct network_policy *ours, const struct network_policy *theirs,
                          struct err *err);
