/* See layer_audit.h. How many paths, and never which: a log of all names that an agent made would be longer than what it
 * did. */
#include "server/layer/layer_audit.h"

#include "base/json.h"
#include "base/str.h"
#include "server/layer/layer_table.h"
#include "server/server.h"

static size_t count_of(const json_t *counts, const char *key)
{
    return (size_t)json_integer_value(json_object_get(counts, key));
}

void layer_audit_step(const struct layer_entry *entry, int step, const json_t *counts)
{
    const struct audit_layer record = {
        .action = "step",
        .layer = entry->id,
        .name = entry->name,
        .step = step,
        .has_changes = json_is_object(counts),
        .added = count_of(counts, "added"),
        .modified = count_of(counts, "modified"),
        .deleted = count_of(counts, "deleted"),
        .renamed = count_of(counts, "renamed"),
        .other = count_of(counts, "other"),
        .marked = count_of(counts, "marked"),
    };

    if (server_audit_is_on(entry->table->server))
        server_audit_add(entry->table->server, AUDIT_LAYER, entry->id, audit_layer_body(&record));
}

void layer_audit_change(const struct layer_entry *entry, const char *id, const char *what,
                        const json_t *params, const json_t *result)
{
    const struct audit_layer record = {
        .action = what,
        .layer = entry->id,
        .name = entry->name,
        .step = (int)json_integer_value(json_object_get(params, "stepId")),
        .accept = (int)json_integer_value(json_object_get(result, "acceptId")),
        .done = json_array_size(json_object_get(result, "done")),
        .left = json_array_size(json_object_get(result, "left")),
    };
    const bool is_one = str_eq(what, "accept") || str_eq(what, "drop") || str_eq(what, "undo");

    if (*id && result && is_one && !json_is_true(json_object_get(params, "dryRun")))
        server_audit_add(entry->table->server, AUDIT_LAYER, id, audit_layer_body(&record));
}

void layer_audit_remove(struct server *server, const char *id, const char *layer)
{
    const struct audit_layer record = {.action = "drop", .layer = layer};

    if (*id)
        server_audit_add(server, AUDIT_LAYER, id, audit_layer_body(&record));
}
