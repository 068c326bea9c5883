/* `cordon explain --json`. The names below are stable.
 *
 *   {
 *     "profile": {"name": "workspace-write", "from": "the default", "extends": null,
 *                 "definition": {...}},              as policy/profile_json.h writes it
 *     "config": null,                                or the file
 *     "mode": "sandboxed" | "bare",
 *     "network": {"access": "restricted" | "enabled", "decided_by": "..."},
 *     "folder": "/work", "workspace_roots": ["/work"],
 *     "restricted": true,                            what no entry names is denied
 *     "entries": [{"path", "access", "state": "folder" | "file" | "missing", "protected",
 *                  "decided_by"}],
 *     "layers": {"user-namespace": {"state": "enforced", "why": null}, ...},   {} when refused
 *     "degraded": false, "refusal": null,
 *     "environment": {"passed": [{"name", "reason", "value"}],       value only with --values
 *                     "dropped": [{"name", "reason", "pattern"}]},
 *     "plan": [{"op": ...}, ...],
 *     "warnings": [],
 *     "command": null                                or as cli/explain_command.h has it
 *   }
 */
#include "cli/explain.h"

#include "base/json.h"
#include "policy/profile_json.h"
#include "sandbox/linux/plan.h"
#include "sandbox/sandbox.h"

#include <string.h>

static json_t *strings_to_json(const struct strv *strings)
{
    json_t *json = json_array();

    for (size_t i = 0; i < strings->len; i++)
        json_array_append_new(json, json_lossy(strings->items[i]));
    return json;
}

static json_t *profile_json(const struct settings *settings)
{
    const struct profile *profile = &settings->chosen.profile;

    return json_pack("{s:o, s:o, s:o, s:o}", "name", json_lossy(settings->profile_name), "from",
                     json_lossy(settings->profile_origin), "extends", json_lossy(profile->extends),
                     "definition", profile_to_json(profile));
}

static json_t *entries_json(const struct access_map *map)
{
    json_t *json = json_array();

    for (size_t i = 0; i < map->len; i++) {
        const struct access_entry *entry = &map->entries[i];

        json_array_append_new(
            json,
            json_pack("{s:o, s:s, s:s, s:b, s:o}", "path", json_lossy(entry->path), "access",
                      access_name(entry->access), "state", explanation_kind_name(entry->kind),
                      "protected", entry->is_protected, "decided_by", json_lossy(entry->origin)));
    }
    return json;
}

static json_t *layers_json(const struct sandbox *sandbox)
{
    json_t *json = json_object();

    for (int i = 0; sandbox && i < LAYER_COUNT; i++) {
        const struct layer_report *layer = sandbox_layer(sandbox, (enum layer)i);

        json_object_set_new(json, layer_name((enum layer)i),
                            json_pack("{s:s, s:o}", "state", layer_state_name(layer->state), "why",
                                      *layer->why ? json_lossy(layer->why) : json_null()));
    }
    return json;
}

/* "NAME=value" is found by its place: both lists are ordered by name, and every note that is no
 * drop has its variable. */
static json_t *environment_json(const struct settings *settings, enum explain_values values)
{
    const struct environment_report *report = &settings->env_report;
    json_t *passed = json_array();
    json_t *dropped = json_array();
    size_t next = 0;

    for (size_t i = 0; i < report->len; i++) {
        const struct environment_note *note = &report->notes[i];
        bool is_dropped = environment_reason_is_drop(note->reason);
        json_t *item = json_pack("{s:o, s:s}", "name", json_lossy(note->name), "reason",
                                 environment_reason_name(note->reason));

        if (is_dropped) {
            json_object_set_new(item, "pattern", json_lossy(note->pattern));
        } else {
            const char *text = settings->env.items[next++];

            if (values == EXPLAIN_VALUES)
                json_object_set_new(item, "value", json_lossy(strchr(text, '=') + 1));
        }
        json_array_append_new(is_dropped ? dropped : passed, item);
    }
    return json_pack("{s:o, s:o}", "passed", passed, "dropped", dropped);
}

json_t *explain_to_json(const struct explanation *explanation, enum explain_values values)
{
    const struct settings *settings = &explanation->settings;
    const struct sandbox *sandbox = explanation->sandbox;
    const struct access_map *map = explanation_access(explanation);
    json_t *json = json_object();

    json_object_set_new(json, "profile", profile_json(settings));
    json_object_set_new(json, "config", json_lossy(settings->file.path));
    json_object_set_new(json, "mode",
                        json_string(settings->mode == SANDBOX_DISABLED ? "bare" : "sandboxed"));
    json_object_set_new(json, "network",
                        json_pack("{s:s, s:o}", "access", network_access_name(map->network),
                                  "decided_by", json_lossy(settings->network_origin)));
    json_object_set_new(json, "folder", json_lossy(settings->folder));
    json_object_set_new(json, "workspace_roots", strings_to_json(&settings->roots));
    json_object_set_new(json, "restricted", json_boolean(map->restricted));
    json_object_set_new(json, "entries", entries_json(map));
    json_object_set_new(json, "layers", layers_json(sandbox));
    json_object_set_new(json, "degraded", json_boolean(sandbox && sandbox_is_degraded(sandbox)));
    json_object_set_new(json, "refusal",
                        sandbox ? json_null() : json_lossy(explanation->refusal.msg));
    json_object_set_new(json, "environment", environment_json(settings, values));
    json_object_set_new(json, "plan", sandbox ? plan_to_json(sandbox_plan(sandbox)) : json_array());
    json_object_set_new(json, "warnings", strings_to_json(&settings->warnings));
    json_object_set_new(json, "command",
                        explanation->command.argv ? explained_command_to_json(&explanation->command)
                                                  : json_null());
    return json;
}
