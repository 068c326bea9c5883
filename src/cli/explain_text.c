/* `cordon explain` for people. Columns, not prose: it is read by looking for one's own line. */
#include "cli/explain.h"

#include "base/buf.h"
#include "cli/console.h"
#include "policy/profile.h"
#include "sandbox/linux/plan.h"
#include "sandbox/sandbox.h"

#include <string.h>

static void print_profile(const struct settings *settings, struct buf *text)
{
    const struct profile *profile = &settings->chosen.profile;

    console_line(text, "profile  %s (from %s)", settings->profile_name, settings->profile_origin);
    if (profile->extends)
        console_line(text, "         extends %s", profile->extends);
    console_line(text, "config   %s", settings->file.path ? settings->file.path : "no file");
    console_line(text, "network  %s (from %s)", network_access_name(settings->access.network),
                 settings->network_origin);
    console_line(text, "folder   %s", settings->folder);
    for (size_t i = 0; i < settings->roots.len; i++)
        console_line(text, "%s  %s", i ? "       " : "roots  ", settings->roots.items[i]);
    for (size_t i = 0; i < settings->warnings.len; i++)
        console_line(text, "warning  %s", settings->warnings.items[i]);
}

static void print_entries(const struct explanation *explanation, struct buf *text)
{
    const struct access_map *map = explanation_access(explanation);

    buf_append_str(text, "\nentries (the longest path decides)\n");
    if (explanation->settings.mode == SANDBOX_DISABLED)
        buf_append_str(text, "  write  everything: there is no sandbox\n");
    else if (!map->restricted)
        buf_append_str(text, "  write  everything: the profile does not restrict files\n");
    else
        buf_append_str(text, "  deny   what no entry names\n");
    for (size_t i = 0; i < map->len; i++) {
        const struct access_entry *entry = &map->entries[i];

        console_line(text, "  %-5s  %s%s%s", access_name(entry->access), entry->path,
                     entry->kind == ACCESS_DIR ? "" : ", ",
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

static void print_variable(const struct settings *settings, const struct environment_note *note,
                           enum explain_values values, struct buf *text)
{
    bool is_dropped = environment_reason_is_drop(note->reason);
    bool has_value = values == EXPLAIN_VALUES && !is_dropped;

    console_line(text, "  %-5s  %s%s%s  (%s%s%s)", is_dropped ? "drop" : "pass", note->name,
                 has_value ? "=" : "", has_value ? value_of(&settings->env, note->name) : "",
                 environment_reason_name(note->reason), note->pattern ? " " : "",
                 note->pattern ? note->pattern : "");
}

static void print_environment(const struct settings *settings, enum explain_values values,
                              struct buf *text)
{
    const struct environment_report *report = &settings->env_report;

    buf_append_str(text, "\nenvironment\n");
    for (size_t i = 0; i < report->len; i++)
        print_variable(settings, &report->notes[i], values, text);
}

static void print_plan(const struct sandbox *sandbox, struct buf *text)
{
    struct buf plan;

    buf_init(&plan, SIZE_MAX / 2);
    plan_print(sandbox_plan(sandbox), &plan);
    buf_append_str(text, "\nplan\n");
    console_lines(text, "  ", plan.data ? plan.data : "");
    buf_done(&plan);
}

void explain_print_text(const struct explanation *explanation, enum explain_values values,
                        struct buf *ret)
{
    if (explanation->command.argv)
        explained_command_print(&explanation->command, ret);
    print_profile(&explanation->settings, ret);
    print_entries(explanation, ret);
    print_layers(explanation, ret);
    print_environment(&explanation->settings, values, ret);
    if (explanation->sandbox && explanation->settings.mode != SANDBOX_DISABLED)
        print_plan(explanation->sandbox, ret);
}
