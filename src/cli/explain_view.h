/* What `cordon explain` says by default, and what it says of two profiles. */
#pragma once

#include "cli/settings.h"

struct buf;
struct explained;
struct json_t;

/* Where what is written goes; nothing without a layer. */
void explain_layer_print(const struct explained *about, struct buf *ret);

void explain_tmp_print(const struct explained *about, struct buf *ret);

/* What a person wants to know of a workspace: what may be written, not read, reached, and what is lacking. */
void explain_short_print(const struct explained *about, struct buf *ret);

/* The network, and what it may reach. */
void explain_network_print(const struct workspace *workspace, struct buf *ret);

/* The line of what commands may take at most; what has no limit is not in it. */
void explain_limits_print(const struct workspace *workspace, struct buf *ret);

/* What the profile of `other` adds to that of `base`, and what it takes away: a list of
 * {"what": "path", "path", "from", "to", "wider", "protected", "decided_by"}, and of "network", "host", "socket", "watch", "judge",
 * "namespaces", "limit" (with "limit", its name) likewise. A new reference. */
struct json_t *explain_diff(const struct settings *base, const struct settings *other);

/* The same for people. */
void explain_diff_print(const struct json_t *differences, const struct settings *base,
                        const struct settings *other, struct buf *ret);
