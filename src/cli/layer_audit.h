/* What is done with change layers, in the audit log. */
#pragma once

#include "audit/record.h"
#include "layer/accept.h"
#include "layer/change.h"
#include "layer/layer.h"

/* The body of a record; `result` or `counts` may be NULL. A new reference. */
struct json_t *layer_audit_body(const struct layer *layer, const char *action, int step,
                                const struct accept_result *result,
                                const struct change_counts *counts);

/* One record by itself, of a command that is about layers alone. What is wrong with the log is said. */
void layer_audit(struct json_t *body);
