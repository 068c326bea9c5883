/* `cordon explain`: everything that `cordon run` with the same options would do up to the launch,
 * printed instead of done; or the answer for one path or host.
 *
 * The plan and the layers are those of this machine: a sandbox is set up, with nothing in it, to
 * know which layers it really gives.
 *
 * For people it prints columns, not prose: they look for one line; without --all what most of them look for
 * (explain_view.h). With --json it prints one value; the names below are stable.
 *
 *   {
 *     "profile": {"name": "workspace-write", "from": "the default", "extends": null,
 *                 "definition": {...}},              as policy/profile_json.h writes it
 *     "config": null,                                or the file
 *     "mode": "sandboxed" | "bare",
 *     "limits": {"pids": {"value": 4096, "default": true}, ...},     cpu-time in ns
 *     "network": {"access": "restricted" | "proxied" | "enabled" | "host", "decided_by": "...",
 *                 "policy": null,                    of a proxied one: network_policy_to_json()
 *                 "publish": ["127.0.0.1:8080:3000"]},
 *     "watch": "facts" | "off" | "ask" | "learn", "judge": "command" | "every-exec", "git": "read" | "commit",
 *     "protect": ["git", "agents", "editors"],
 *     "tmp": {"whose": "private" | "host" | "none", "path": FOLDER or null, "why": ...},   of private ones
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
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/explain_answer.h"
#include "cli/explain_command.h"
#include "cli/explain_view.h"
#include "cli/settings.h"
#include "policy/profile.h"
#include "policy/profile_json.h"
#include "sandbox/linux/plan.h"
#include "sandbox/sandbox.h"

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum explain_flag { EXPLAIN_JSON = 1, EXPLAIN_WITH_VALUES = 2, EXPLAIN_ALL = 4 };

struct explain_options {
    struct policy_options policy;
    const char *path;
    const char *host;
    const char *diff;   /* a profile */
    enum access wanted; /* of --path */
    unsigned flags;     /* of enum explain_flag */
};

/* What is explained. */
struct explanation {
    struct explain_options options;
    struct settings settings;
    struct sandbox *sandbox;          /* NULL when none can be made: `refusal` */
    struct explained_command command; /* `argv` NULL: none was asked about */
    struct err refusal;
};

/* The map that holds: with what was added for Cordon's own files when there is a sandbox. */
static const struct access_map *explanation_access(const struct explanation *explanation)
{
    return explanation->sandbox && explanation->settings.workspace->mode != SANDBOX_DISABLED
               ? sandbox_access(explanation->sandbox)
               : &explanation->settings.workspace->map;
}

static const char *explanation_kind_name(enum access_kind kind)
{
    static const char *const names[] = {
        [ACCESS_MISSING] = "missing", [ACCESS_DIR] = "folder", [ACCESS_FILE] = "file"};

    return names[kind];
}

/* --- for people --- */

/* What is looked at while a command runs, and what that costs. */
static void print_watch(const struct settings *settings, struct buf *text)
{
    static const char *const watch[] = {
        [PROFILE_WATCH_FACTS] = "what is refused is told (some us for each change of a file)",
        [PROFILE_WATCH_OFF] = "nothing is told by the guard",
        [PROFILE_WATCH_ASK] = "what is refused is told, and held where somebody can be asked",
        [PROFILE_WATCH_LEARN] = "what is refused is told, and a timeline has what is read",
    };
    const struct profile *profile = &settings->workspace->profile;

    if (settings->workspace->mode == SANDBOX_DISABLED)
        return;
    console_line(text, "watch    %s: %s", profile_watch_words[profile->watch],
                 watch[profile->watch]);
    if (profile->git == PROFILE_GIT_COMMIT)
        console_line(text, "git      commit: what git writes may be written; hooks and "
                           "configuration may not");
    if (profile->judge == PROFILE_JUDGE_EVERY_EXEC)
        console_line(text, "judge    every-exec: each program is judged (some 250 us each), which "
                           "is advice to a hostile one and no boundary");
}

static void print_protect(const struct settings *settings, struct buf *text)
{
    const struct protect_choice *choice = &settings->workspace->protect;
    AUTO(strv_done) struct strv words = {0};

    if (settings->workspace->mode == SANDBOX_DISABLED)
        return;
    protect_choice_words(choice, &words);
    for (size_t i = 0; i < words.len; i++)
        console_line(text, "%s  %s%s", i ? "       " : "protect", words.items[i],
                     choice->is_made ? "" : " (by default)");
}

static void print_profile(const struct explanation *explanation, struct buf *text)
{
    const struct settings *settings = &explanation->settings;
    const struct profile *profile = &settings->workspace->profile;

    console_line(text, "profile  %s (from %s)", settings->workspace->profile_name,
                 settings->workspace->profile_from);
    if (profile->extends)
        console_line(text, "         extends %s", profile->extends);
    console_line(text, "config   %s", settings->file.path ? settings->file.path : "no file");
    explain_network_print(settings->workspace, text);
    print_protect(settings, text);
    explain_tmp_print(settings->workspace, explanation_access(explanation), text);
    print_watch(settings, text);
    explain_limits_print(settings->workspace, text);
    console_line(text, "folder   %s", settings->workspace->dir);
    for (size_t i = 0; i < settings->workspace->roots.len; i++)
        console_line(text, "%s  %s", i ? "       " : "roots  ",
                     settings->workspace->roots.items[i]);
    for (size_t i = 0; i < settings->warnings.len; i++)
        console_line(text, "warning  %s", settings->warnings.items[i]);
}

static void print_entries(const struct explanation *explanation, struct buf *text)
{
    const struct access_map *map = explanation_access(explanation);

    buf_append_str(text, "\nentries (the longest path decides)\n");
    if (explanation->settings.workspace->mode == SANDBOX_DISABLED)
        buf_append_str(text, "  write  everything: there is no sandbox\n");
    else if (!map->restricted)
        buf_append_str(text, "  write  everything: the profile does not restrict files\n");
    else
        buf_append_str(text, "  deny   what no entry names\n");
    for (size_t i = 0; i < map->len; i++) {
        const struct access_entry *entry = &map->entries[i];

        console_line(text, "  %-5s  %s%s%s", entry->asks ? "ask" : access_name(entry->access),
                     entry->path, entry->kind == ACCESS_DIR ? "" : ", ",
                     entry->kind == ACCESS_DIR ? "" : explanation_kind_name(entry->kind));
        console_line(text, "         by %s", entry->origin);
    }
}

static void print_layers(const struct explanation *explanation, struct buf *text)
{
    buf_append_str(text, "\nlayers\n");
    if (!explanation->sandbox) {
        console_line(text, "  refused: %s", explanation->refusal.msg);
        return;
    }
    for (int i = 0; i < LAYER_COUNT; i++) {
        const struct layer_report *layer = sandbox_layer(explanation->sandbox, (enum layer)i);

        console_line(text, "  %-18s %s%s%s", layer_name((enum layer)i),
                     layer_state_name(layer->state), *layer->why ? ": " : "", layer->why);
    }
}

/* What stands behind "NAME=" in the environment; "" when it is not there. */
static const char *value_of(const struct strv *env, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < env->len; i++)
        if (strncmp(env->items[i], name, len) == 0 && env->items[i][len] == '=')
            return env->items[i] + len + 1;
    return "";
}

static void print_environment(const struct explanation *explanation, struct buf *text)
{
    const struct workspace *workspace = explanation->settings.workspace;
    const struct environment_report *report = &workspace->env_report;

    buf_append_str(text, "\nenvironment\n");
    for (size_t i = 0; i < report->len; i++) {
        const struct environment_note *note = &report->notes[i];
        bool is_dropped = environment_reason_is_drop(note->reason);
        bool has_value = explanation->options.flags & EXPLAIN_WITH_VALUES && !is_dropped;

        console_line(text, "  %-5s  %s%s%s  (%s%s%s)", is_dropped ? "drop" : "pass", note->name,
                     has_value ? "=" : "", has_value ? value_of(&workspace->env, note->name) : "",
                     environment_reason_name(note->reason), note->pattern ? " " : "",
                     note->pattern ? note->pattern : "");
    }
}

static void explain_print_text(const struct explanation *explanation, struct buf *ret)
{
    AUTO(buf_done) struct buf plan = {.max = SIZE_MAX / 2};

    if (explanation->command.argv)
        explained_command_print(&explanation->command, ret);
    if (!(explanation->options.flags & (EXPLAIN_ALL | EXPLAIN_WITH_VALUES))) {
        explain_short_print(&explanation->settings, explanation_access(explanation),
                            explanation->sandbox, &explanation->refusal, ret);
        return;
    }
    print_profile(explanation, ret);
    print_entries(explanation, ret);
    print_layers(explanation, ret);
    print_environment(explanation, ret);
    if (!explanation->sandbox || explanation->settings.workspace->mode == SANDBOX_DISABLED)
        return;
    plan_print(sandbox_plan(explanation->sandbox), &plan);
    buf_append_str(ret, "\nplan\n");
    console_lines(ret, "  ", plan.data ? plan.data : "");
}

/* --- for programs --- */

static json_t *entries_json(const struct access_map *map)
{
    json_t *json = json_array();

    for (size_t i = 0; i < map->len; i++) {
        const struct access_entry *entry = &map->entries[i];

        json_array_append_new(
            json,
            json_pack("{s:o, s:s, s:s, s:b, s:o*, s:o}", "path", json_lossy(entry->path), "access",
                      access_name(entry->access), "state", explanation_kind_name(entry->kind),
                      "protected", entry->is_protected, "ask", entry->asks ? json_true() : NULL,
                      "decided_by", json_lossy(entry->origin)));
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
static json_t *environment_json(const struct explanation *explanation)
{
    const struct workspace *workspace = explanation->settings.workspace;
    const struct environment_report *report = &workspace->env_report;
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
            const char *text = workspace->env.items[next++];

            if (explanation->options.flags & EXPLAIN_WITH_VALUES)
                json_object_set_new(item, "value", json_lossy(strchr(text, '=') + 1));
        }
        json_array_append_new(is_dropped ? dropped : passed, item);
    }
    return json_pack("{s:o, s:o}", "passed", passed, "dropped", dropped);
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

static json_t *explain_to_json(const struct explanation *explanation)
{
    const struct settings *settings = &explanation->settings;
    const struct workspace *workspace = settings->workspace;
    const struct sandbox *sandbox = explanation->sandbox;
    const struct access_map *map = explanation_access(explanation);
    json_t *json =
        json_pack("{s:{s:o, s:o, s:o, s:o}, s:o, s:s, s:{s:s, s:o, s:o, s:o}, s:o, s:o, s:b, s:o, "
                  "s:o, s:b, s:o}",
                  "profile", "name", json_lossy(workspace->profile_name), "from",
                  json_lossy(workspace->profile_from), "extends",
                  json_lossy(workspace->profile.extends), "definition",
                  profile_to_json(&workspace->profile), "config", json_lossy(settings->file.path),
                  "mode", workspace->mode == SANDBOX_DISABLED ? "bare" : "sandboxed", "network",
                  "access", network_access_name(map->network), "decided_by",
                  json_lossy(workspace->network_from), "policy",
                  map->network == NETWORK_PROXIED ? network_policy_to_json(&map->network_policy)
                                                  : json_null(),
                  "publish", publications_to_json(&map->network_policy.publications), "folder",
                  json_lossy(workspace->dir), "workspace_roots",
                  json_lossy_list(strv_view(&workspace->roots)), "restricted", map->restricted,
                  "entries", entries_json(map), "layers", layers_json(sandbox), "degraded",
                  sandbox && sandbox_is_degraded(sandbox), "refusal",
                  sandbox ? json_null() : json_lossy(explanation->refusal.msg));

    json_object_set_new(json, "protect", protect_to_json(&workspace->protect));
    json_object_set_new(
        json, "tmp",
        json_pack("{s:s, s:o, s:o}", "whose", explain_whose_tmp(workspace, map), "path",
                  json_lossy(workspace->tmp.folder), "why",
                  *workspace->tmp.why.msg ? json_lossy(workspace->tmp.why.msg) : json_null()));
    json_object_set_new(json, "watch", json_string(profile_watch_words[workspace->profile.watch]));
    json_object_set_new(json, "limits", limits_to_json(workspace));
    json_object_set_new(json, "judge", json_string(profile_judge_words[workspace->profile.judge]));
    json_object_set_new(json, "git", json_string(profile_git_words[workspace->profile.git]));
    json_object_set_new(json, "environment", environment_json(explanation));
    json_object_set_new(json, "plan", sandbox ? plan_to_json(sandbox_plan(sandbox)) : json_array());
    json_object_set_new(json, "warnings", json_lossy_list(strv_view(&settings->warnings)));
    json_object_set_new(json, "command",
                        explanation->command.argv ? explained_command_to_json(&explanation->command)
                                                  : json_null());
    return json;
}

/* --- the command --- */

static void explanation_done(struct explanation *explanation)
{
    explained_command_done(&explanation->command);
    settings_done(&explanation->settings);
    policy_options_done(&explanation->options.policy);
}

/* --- options --- */

static const char *const access_words[] = {"read", "write", NULL};

static const struct option question_options[] = {
    {.name = "path",
     .value = "PATH",
     INTO_TEXT(struct explain_options, path),
     .wrong = "the path is empty",
     .help = "Answers for one path: whether it may be read or written, the entry that decides, and "
             "who wrote that. The exit status is 0 when the access is allowed, else 1."},
    {.name = "for",
     .value = "ACCESS",
     .words = access_words,
     INTO_WORD(struct explain_options, wanted, ACCESS_READ),
     .help = "The access that --path is about: read (the default) or write."},
    {.name = "host",
     .value = "HOST[:PORT]",
     INTO_TEXT(struct explain_options, host),
     .wrong = "the name is empty",
     .help = "Answers for one host: whether it can be reached, the rule that decides and who wrote "
             "it, and what would allow it. Without a port: whether its name is looked up. Exit "
             "status as for --path."},
    {.name = "diff",
     .value = "PROFILE",
     INTO_TEXT(struct explain_options, diff),
     .wrong = "the name is empty",
     .help = "Answers for another profile: what it adds (+) to the one that counts here, and what "
             "it takes away (-)."},
    {.name = NULL},
};

static const struct option approval_options[] = {
    {.name = "ask-for-approval",
     .letter = 'a',
     .value = "POLICY",
     .words = policy_approval_words,
     .set = policy_set_approval,
     .offset = offsetof(struct explain_options, policy),
     .help = "The approval policy under which COMMAND is judged, as in cordon run."},
    {.name = NULL},
};

static const struct option output_options[] = {
    {.name = "all",
     INTO_FLAG(struct explain_options, flags, EXPLAIN_ALL),
     .help = "Shows everything: each entry and who wrote it, each layer, the variables, and the "
             "plan that the launcher carries out."},
    {.name = "values",
     INTO_FLAG(struct explain_options, flags, EXPLAIN_WITH_VALUES),
     .help = "As --all, and shows the values of the variables that would be passed, too."},
    {.name = "json",
     .letter = 'j',
     INTO_FLAG(struct explain_options, flags, EXPLAIN_JSON),
     .help = "Prints one JSON value."},
    {.name = NULL},
};

static const struct option_group explain_groups[] = {
    {"Question", question_options},
    {"Approval", approval_options},
    {"Output", output_options},
    {"Permissions", policy_permission_options, offsetof(struct explain_options, policy)},
    {"Environment", policy_environment_options, offsetof(struct explain_options, policy)},
    {NULL, NULL},
};

/* --- answers --- */

static int print_text_or_json(struct buf *text, json_t *json)
{
    int status = json ? console_print_json(json) : console_print(text);

    json_decref(json);
    return status;
}

static int answer(const struct explanation *explanation)
{
    const struct explain_question question = {.path = explanation->options.path,
                                              .host = explanation->options.host,
                                              .wanted = explanation->options.wanted,
                                              .map = explanation_access(explanation)};
    AUTO(explain_answer_done) struct explain_answer answer = {0};
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    bool is_json = explanation->options.flags & EXPLAIN_JSON;
    struct err err;
    int status;

    if (explanation->options.host ? explain_host(&explanation->settings, &question, &answer, &err)
                                  : explain_path(&explanation->settings, &question, &answer, &err))
        return console_fail(&err);
    if (!is_json)
        explain_answer_print(&answer, &text);
    status = print_text_or_json(&text, is_json ? explain_answer_to_json(&answer) : NULL);
    return status == EXIT_OK && !answer.is_allowed ? EXIT_NO : status;
}

static int explain_all(const struct explanation *explanation)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    const struct explained_command *command = &explanation->command;
    bool is_json = explanation->options.flags & EXPLAIN_JSON;
    bool is_refused = command->argv && command->requirement.outcome == REQUIREMENT_FORBID;
    int status;

    if (!is_json)
        explain_print_text(explanation, &text);
    status = print_text_or_json(&text, is_json ? explain_to_json(explanation) : NULL);
    if (status == EXIT_OK && !explanation->sandbox)
        return console_fail(&explanation->refusal);
    return status == EXIT_OK && is_refused ? EXIT_NO : status;
}

/* The other profile, under the same options. */
static int explain_other(const struct explanation *explanation)
{
    AUTO(settings_done) struct settings other = {.workspace = NULL};
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    struct policy_options options = explanation->options.policy; /* borrowed */
    bool is_json = explanation->options.flags & EXPLAIN_JSON;
    json_t *differences;
    struct err err;

    options.profile = explanation->options.diff;
    if (settings_init(&other, &options, &err))
        return console_fail(&err);
    differences = explain_diff(&explanation->settings, &other);
    explain_diff_print(differences, &explanation->settings, &other, &text);
    if (!is_json) {
        json_decref(differences);
        return console_print(&text);
    }
    return print_text_or_json(
        NULL, json_pack("{s:o, s:o, s:o}", "profile", json_lossy(other.workspace->profile_name),
                        "beside", json_lossy(explanation->settings.workspace->profile_name),
                        "differences", differences));
}

static int explain_run(char **argv)
{
    AUTO(explanation_done) struct explanation explanation = {.options = {.wanted = ACCESS_READ}};
    const struct explain_options *options = &explanation.options;
    struct err err;
    char **rest;
    int status;

    if (!command_parse(&command_explain, argv, &explanation.options, &rest, &status))
        return status;
    if (!!options->path + !!options->host + !!options->diff + !!*rest > 1)
        return console_failf("--path, --host, --diff and COMMAND are different questions; ask one "
                             "at a time");
    if (options->wanted != ACCESS_READ && !options->path)
        return console_failf("--for is about a path; add --path PATH");
    if (settings_init(&explanation.settings, &options->policy, &err))
        return console_fail(&err);
    if (options->diff)
        return explain_other(&explanation);
    /* a machine that cannot enforce the profile is no failure of explaining it */
    if (workspace_probe(explanation.settings.workspace, &explanation.refusal) == 0)
        explanation.sandbox = explanation.settings.workspace->sandbox;
    if (*rest)
        explained_command_init(&explanation.command, &explanation.settings, rest);
    return options->path || options->host ? answer(&explanation) : explain_all(&explanation);
}

const struct command command_explain = {
    .name = "explain",
    .summary = "show what a command would be allowed, and who decided it",
    .usage = "[OPTION]... [--path PATH | --host HOST[:PORT] | --diff PROFILE | [--] COMMAND...]",
    .about =
        "Shows what \"cordon run\" with the same options would do: the profile, what may be "
        "written and what not be read, the network, and the layers that are lacking on this "
        "machine; with --all also the origin of every entry, the variables that would be "
        "passed or left out and why, and the plan that the launcher carries out. With COMMAND it "
        "begins with what becomes of that: the rules that match and where they stand, whether "
        "it is known to be harmless or dangerous, whether it is asked about, and whether it "
        "keeps its sandbox. Nothing is run.\n"
        "\n"
        "The exit status is 0, or 1 when --path or --host is answered with no or COMMAND would "
        "be refused, or 125 when the profile is wrong or cannot be enforced here.\n",
    .examples = "  cordon explain\n"
                "  cordon explain --profile dev --json | jq .plan\n"
                "  cordon explain --path .git/hooks/pre-commit --for write\n"
                "  cordon explain --host example.org\n"
                "  cordon explain --diff dev\n"
                "  cordon explain -a on-request -- git push origin main\n"
                "  cordon explain --values | less\n",
    .page = "cordon-explain",
    .groups = explain_groups,
    .run = explain_run,
};
