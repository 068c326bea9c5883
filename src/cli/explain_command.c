/* See explain_command.h. The requirement is what `cordon run` begins with, by the same function
 * and the same options; everything else here says what went into it. */
#include "cli/explain_command.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "cli/console.h"
#include "cli/rules.h"
#include "cli/settings.h"
#include "executor/execution.h"
#include "patch/call.h"
#include "rules/rules.h"

#include <string.h>

static const char bypass_text[] =
    "an allow rule without sandbox = \"keep\" means what it means to Codex: the command runs "
    "without a question and without any sandbox";
static const char bypass_unused_text[] =
    "an allow rule without sandbox = \"keep\" would let the command out of its sandbox under an "
    "approval policy; none was chosen, so it stays in";
static const char bypass_held_text[] =
    "an allow rule without sandbox = \"keep\" would let the command out of its sandbox; it keeps "
    "it all the same, because only the sandbox hides what the profile denies, or because the "
    "program lies where a command in the sandbox could have put it";
static const char broken_text[] = "a rules file that does not parse could have forbidden anything, "
                                  "so what no other rule decides is asked about, or refused where "
                                  "no question is asked";
static const char patch_text[] =
    "it is a patch: Cordon applies it itself, in the sandbox and with an empty environment";

void explained_command_init(struct explained_command *ret, const struct settings *settings,
                            char *const *argv)
{
    AUTO(patch_call_done) struct patch_call call;
    struct execution_options options;

    patch_call_read(argv, &call);
    settings_execution(settings, argv, &options);
    *ret = (struct explained_command){.settings = settings, .argv = argv};
    ret->rules = execution_rules(&options);
    host_finder_init(&ret->finder, strv_view(&settings->workspace->env), options.cwd);
    rules_check_make(ret->rules, argv, &ret->check);
    ret->danger = command_view_danger(&ret->check.view);
    ret->is_safe = command_view_is_safe(&ret->check.view, &ret->finder.finder);
    ret->is_patch = call.kind == PATCH_CALL_PATCH;
    execution_decide(&options, ret->rules, &ret->requirement);
}

void explained_command_done(struct explained_command *command)
{
    if (!command->argv)
        return;
    requirement_done(&command->requirement);
    rules_check_done(&command->check);
    rules_free(command->rules);
    *command = (struct explained_command){.argv = NULL};
}

/* --- words --- */

static const char *class_words(const struct explained_command *command)
{
    if (command->danger == DANGER_FORCED_RM)
        return "dangerous: it removes files by force (rm -f)";
    if (command->danger != DANGER_NONE)
        return "dangerous: it is nested too deep to be looked through";
    return command->is_safe ? "known to be harmless: it only reads and prints"
                            : "neither known to be harmless nor to be dangerous";
}

/* What the allow rules come to; NULL when it is not that. */
static const char *bypass_words(const struct explained_command *command)
{
    if (rules_check_verdict(&command->check) != RULE_BYPASS)
        return NULL;
    if (!command->settings->approval_from)
        return bypass_unused_text;
    return command->requirement.where == RUN_UNCONFINED ? bypass_text : bypass_held_text;
}

static const char *broken_words(const struct explained_command *command)
{
    size_t len;

    (void)rules_problems(command->rules, &len);
    return len ? broken_text : NULL;
}

static const char *place_words(const struct explained_command *command)
{
    if (command->requirement.outcome == REQUIREMENT_FORBID)
        return "nowhere";
    return command->settings->workspace->mode == SANDBOX_DISABLED ||
                   command->requirement.where == RUN_UNCONFINED
               ? "without a sandbox"
               : "in the sandbox of the profile";
}

/* --- for people --- */

static void print_note(const char *name, const char *words, struct buf *text)
{
    if (words)
        console_line(text, "  %-8s %s", name, words);
}

void explained_command_print(const struct explained_command *command, struct buf *text)
{
    static const char *const outcomes[] = {
        [REQUIREMENT_SKIP] = "runs without a question",
        [REQUIREMENT_ASK] = "is asked about first",
        [REQUIREMENT_FORBID] = "is refused",
    };
    const struct settings *settings = command->settings;
    AUTO(buf_done) struct buf words = {.max = SIZE_MAX / 2};
    AUTO(buf_done) struct buf rules = {.max = SIZE_MAX / 2};

    for (size_t i = 0; command->argv[i]; i++)
        buf_appendf(&words, "%s%s", i ? " " : "", command->argv[i]);
    console_line(text, "command  %s", words.data);
    console_line(text, "  decision %s: %s", outcomes[command->requirement.outcome],
                 command->requirement.reason);
    print_note("runs", place_words(command), text);
    if (settings->approval_from)
        console_line(text, "  approval %s (from %s)", approval_mode_name(settings->approval.mode),
                     settings->approval_from);
    else
        print_note("approval", "no policy: no question is asked, and only what rules forbid counts",
                   text);
    print_note("class", class_words(command), text);
    print_note("bypass", bypass_words(command), text);
    print_note("broken", broken_words(command), text);
    print_note("patch", command->is_patch ? patch_text : NULL, text);
    buf_append_str(text, "  rules\n");
    rules_check_print(&command->check, &rules);
    console_lines(text, "    ", rules.data ? rules.data : "");
    buf_append_str(text, "\n");
}

/* --- for programs --- */

json_t *explained_command_to_json(const struct explained_command *command)
{
    static const char *const dangers[] = {
        [DANGER_NONE] = NULL, [DANGER_FORCED_RM] = "forced-rm", [DANGER_OTHER] = "nested-too-deep"};
    const struct settings *settings = command->settings;
    const struct requirement *requirement = &command->requirement;
    bool is_bare = settings->workspace->mode == SANDBOX_DISABLED;
    const char *class = command->danger != DANGER_NONE ? "dangerous"
                        : command->is_safe             ? "known-safe"
                                                       : "neither";

    return json_pack(
        "{s:o, s:b, s:o, s:s, s:o, s:{s:o, s:o}, s:{s:s, s:s, s:o, s:s}, s:o, s:o}", "argv",
        json_lossy_list(command->argv), "patch", command->is_patch, "rules",
        rules_check_to_json(&command->check), "class", class, "danger",
        json_lossy(dangers[command->danger]), "approval", "policy",
        settings->approval_from ? approval_policy_to_json(&settings->approval) : json_null(),
        "from", json_lossy(settings->approval_from), "requirement", "outcome",
        requirement_outcome_name(requirement->outcome), "cause",
        requirement_cause_name(requirement->cause), "reason", json_lossy(requirement->reason),
        "place", is_bare ? "none" : run_where_name(requirement->where), "bypass",
        json_lossy(bypass_words(command)), "broken", json_lossy(broken_words(command)));
}
