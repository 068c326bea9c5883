/* See explanation.h. */
#include "explain/explanation.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"
#include "explain/command.h"
#include "layer/as_json.h"
#include "policy/network_hook.h"
#include "policy/profile.h"
#include "policy/profile_json.h"
#include "sandbox/linux/plan.h"
#include "sandbox/sandbox.h"
#include "workspace/workspace.h"

#include <jansson.h>
#include <string.h>

const struct access_map *explained_access(const struct explained *about)
{
    return about->sandbox && about->workspace->mode != SANDBOX_DISABLED
               ? sandbox_access(about->sandbox)
               : &about->workspace->map;
}

const char *explained_kind_name(enum access_kind kind)
{
    static const char *const names[] = {
        [ACCESS_MISSING] = "missing", [ACCESS_DIR] = "folder", [ACCESS_FILE] = "file"};

    return names[kind];
}

const char *explained_whose_tmp(const struct explained *about)
{
    const struct workspace *workspace = about->workspace;
    const struct access_map *map = explained_access(about);

    if (workspace->profile.tmp == PROFILE_TMP_HOST || !map->restricted)
        return "host";
    for (size_t i = 0; i < map->len; i++)
        if (map->entries[i].source)
            return "private";
    return "none";
}

/* --- environment --- */

/* What a command gets, whatever the profile says of it: presets and the network set variables, too. */
static void read_environment(const struct explained *about, struct strv *ret)
{
    if (about->sandbox)
        sandbox_env(about->sandbox, about->env, ret);
    else
        strv_push_all(ret, about->env);
}

static bool has_variable(const struct strv *env, const char *name)
{
    const size_t len = strlen(name);

    for (size_t i = 0; i < env->len; i++)
        if (strncmp(env->items[i], name, len) == 0 && env->items[i][len] == '=')
            return true;
    return false;
}

static const struct environment_note *find_note(const struct environment_report *report,
                                                const char *name)
{
    for (size_t i = 0; report && i < report->len; i++)
        if (str_eq(report->notes[i].name, name))
            return &report->notes[i];
    return NULL;
}

json_t *explained_environment(const struct explained *about, bool with_values)
{
    const struct environment_report *report = about->env_report;
    AUTO(strv_done) struct strv env = {0};
    json_t *passed = json_array();
    json_t *dropped = json_array();

    read_environment(about, &env);
    strv_sort(&env);
    for (size_t i = 0; i < env.len; i++) {
        AUTO_FREE char *name = alloc_strn(env.items[i], strcspn(env.items[i], "="));
        const struct environment_note *note = find_note(report, name);
        const bool is_kept = note && !environment_reason_is_drop(note->reason);
        json_t *item =
            json_pack("{s:o, s:s}", "name", json_lossy(name), "reason",
                      environment_reason_name(is_kept ? note->reason : ENVIRONMENT_ADDED));

        if (with_values)
            json_object_set_new(item, "value", json_lossy(env.items[i] + strlen(name) + 1));
        json_array_append_new(passed, item);
    }
    for (size_t i = 0; report && i < report->len; i++) {
        const struct environment_note *note = &report->notes[i];

        if (environment_reason_is_drop(note->reason) && !has_variable(&env, note->name))
            json_array_append_new(dropped,
                                  json_pack("{s:o, s:s, s:o}", "name", json_lossy(note->name),
                                            "reason", environment_reason_name(note->reason),
                                            "pattern", json_lossy(note->pattern)));
    }
    return json_pack("{s:o, s:o}", "passed", passed, "dropped", dropped);
}

/* --- parts --- */

static json_t *entries_json(const struct access_map *map)
{
    json_t *json = json_array();

    for (size_t i = 0; i < map->len; i++) {
        const struct access_entry *entry = &map->entries[i];

        json_array_append_new(
            json,
            json_pack("{s:o, s:s, s:s, s:b, s:o*, s:o}", "path", json_lossy(entry->path), "access",
                      access_name(entry->access), "state", explained_kind_name(entry->kind),
                      "protected", entry->is_protected, "ask", entry->asks ? json_true() : NULL,
                      "decided_by", json_lossy(entry->origin)));
    }
    return json;
}

static json_t *defences_json(const struct sandbox *sandbox)
{
    json_t *json = json_object();

    for (int i = 0; sandbox && i < DEFENCE_COUNT; i++) {
        const struct defence_report *layer = sandbox_defence(sandbox, (enum defence)i);

        json_object_set_new(json, defence_name((enum defence)i),
                            json_pack("{s:s, s:o}", "state", defence_state_name(layer->state),
                                      "why", *layer->why ? json_lossy(layer->why) : json_null()));
    }
    return json;
}

static json_t *protect_to_json(const struct protect_choice *choice)
{
    AUTO(strv_done) struct strv words = {0};

    protect_choice_words(choice, &words);
    return json_lossy_list(strv_view(&words));
}

static json_t *limits_to_json(const struct workspace *workspace)
{
    struct resource_limits limits;
    json_t *json = json_object();

    workspace_limits(workspace, &limits);
    for (int i = 0; i < LIMIT_COUNT; i++)
        if (limits.of[i] && limits.of[i] != LIMIT_NONE)
            json_object_set_new(json, resource_limit_name((enum resource_limit)i),
                                json_pack("{s:I, s:b}", "value", (json_int_t)limits.of[i],
                                          "default", !!(limits.defaults & 1u << i)));
    return json;
}

static json_t *network_to_json(const struct workspace *workspace, const struct access_map *map)
{
    const struct network_policy *policy = &map->network_policy;
    const bool is_proxied = map->network == NETWORK_PROXIED;
    json_t *json = json_pack("{s:s, s:o, s:o, s:o}", "access", network_access_name(map->network),
                             "decided_by", json_lossy(workspace->network_from), "policy",
                             is_proxied ? network_policy_to_json(policy) : json_null(), "publish",
                             publications_to_json(&policy->publications));
    AUTO_JSON json_t *hooks = network_hooks_describe(
        is_proxied && policy->hooks ? policy->hooks : &(struct network_hooks){0});

    json_object_update(json, hooks);
    return json;
}

static json_t *view_to_json(const struct layer *layer)
{
    const struct layer_root *roots;
    size_t len;

    if (!layer)
        return json_null();
    roots = layer_roots(layer, &len);
    return json_pack("{s:o, s:b, s:b, s:o}", "name", json_lossy(layer_own_name(layer)), "git",
                     layer_has_git(layer), "in_memory", layer_is_in_memory(layer), "roots",
                     layer_roots_to_json(roots, len));
}

/* --- all of it --- */

json_t *explained_to_json(const struct explained *about, const struct explained_command *command,
                          bool with_values)
{
    const struct workspace *workspace = about->workspace;
    const struct sandbox *sandbox = about->sandbox;
    const struct access_map *map = explained_access(about);
    json_t *json = json_pack(
        "{s:{s:o, s:o, s:o, s:o}, s:o, s:s, s:o, s:o, s:o, s:b, s:o, s:o, s:b, s:o}", "profile",
        "name", json_lossy(workspace->profile_name), "from", json_lossy(workspace->profile_from),
        "extends", json_lossy(workspace->profile.extends), "definition",
        profile_to_json(&workspace->profile), "config", json_lossy(about->config), "mode",
        workspace->mode == SANDBOX_DISABLED ? "bare" : "sandboxed", "network",
        network_to_json(workspace, map), "folder", json_lossy(about->dir), "workspace_roots",
        json_lossy_list(strv_view(&workspace->roots)), "restricted", map->restricted, "entries",
        entries_json(map), "layers", defences_json(sandbox), "degraded",
        sandbox && sandbox_is_degraded(sandbox), "refusal",
        sandbox ? json_null() : json_lossy(about->refusal->msg));

    json_object_set_new(json, "protect", protect_to_json(&workspace->protect));
    json_object_set_new(
        json, "tmp",
        json_pack("{s:s, s:o, s:o}", "whose", explained_whose_tmp(about), "path",
                  json_lossy(workspace->tmp.folder), "why",
                  *workspace->tmp.why.msg ? json_lossy(workspace->tmp.why.msg) : json_null()));
    json_object_set_new(json, "layer", view_to_json(workspace->layer));
    json_object_set_new(json, "watch", json_string(profile_watch_words[workspace->profile.watch]));
    json_object_set_new(json, "limits", limits_to_json(workspace));
    json_object_set_new(json, "judge", json_string(profile_judge_words[workspace->profile.judge]));
    json_object_set_new(json, "git", json_string(profile_git_words[workspace->profile.git]));
    json_object_set_new(json, "environment", explained_environment(about, with_values));
    json_object_set_new(json, "plan", sandbox ? plan_to_json(sandbox_plan(sandbox)) : json_array());
    json_object_set_new(json, "warnings", json_lossy_list(about->warnings));
    json_object_set_new(json, "command",
                        command ? explained_command_to_json(command) : json_null());
    return json;
}
