/* What becomes of layers, in the audit log: each step, accept, drop and undo. */
#pragma once

#include "server/server_audit.h"

#include <jansson.h>

struct layer_entry;
struct server;

/* A step has ended; `counts` as in layer/changes. Under the id of the layer. */
void layer_audit_step(const struct layer_entry *entry, int step, const json_t *counts);

/* What a call did: "accept", "drop" or "undo", with its parameters and result; under `id`, ""  when there is no log. */
void layer_audit_change(const struct layer_entry *entry, const char *id, const char *what,
                        const json_t *params, const json_t *result);

/* A layer is gone, with all that was in it; as it was called by who wanted that. */
void layer_audit_remove(struct server *server, const char *id, const char *layer);
