/* `cordon explain`: everything that `cordon run` with the same options would do up to the launch,
 * printed instead of done; or the answer for one path or host.
 *
 * The plan and the layers are those of this machine: a sandbox is set up, with nothing in it, to
 * know which layers it really gives.
 *
 * For people it prints columns, not prose: they look for one line; without --all what most of them look for
 * (explain_view.h). With --json it prints the one value of explain/explanation.h.
 */
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/explain_view.h"
#include "cli/rules.h"
#include "cli/run_layer.h"
#include "cli/settings.h"
#include "executor/execution.h"
#include "explain/answer.h"
#include "explain/command.h"
#include "explain/explanation.h"
#include "policy/profile.h"
#include "sandbox/linux/plan.h"
#include "sandbox/sandbox.h"

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum explain_flag { EXPLAIN_JSON = 1, EXPLAIN_WITH_VALUES = 2, EXPLAIN_ALL = 4 };

struct explain_options {
    struct policy_options policy;
    struct layer_options_given layer;
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
    struct run_layer layer;
    struct explained about;
    struct execution_options execution;
    struct explained_command command; /* `argv` NULL: none was asked about */
    struct err refusal;
};

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
    explain_layer_print(&explanation->about, text);
    explain_tmp_print(&explanation->about, text);
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
    const struct access_map *map = explained_access(&explanation->about);

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
                     entry->kind == ACCESS_DIR ? "" : explained_kind_name(entry->kind));
        console_line(text, "         by %s", entry->origin);
    }
}

static void print_defences(const struct explanation *explanation, struct buf *text)
{
    buf_append_str(text, "\nlayers\n");
    if (!explanation->about.sandbox) {
        console_line(text, "  refused: %s", explanation->refusal.msg);
        return;
    }
    for (int i = 0; i < DEFENCE_COUNT; i++) {
        const struct defence_report *layer =
            sandbox_defence(explanation->about.sandbox, (enum defence)i);

        console_line(text, "  %-18s %s%s%s", defence_name((enum defence)i),
                     defence_state_name(layer->state), *layer->why ? ": " : "", layer->why);
    }
}

/* --- environment --- */

static const char *text_of(const json_t *item, const char *key)
{
    const char *text = json_string_value(json_object_get(item, key));

    return text ? text : "";
}

static void print_variables(const json_t *list, const char *word, struct buf *text)
{
    size_t i;
    json_t *item;

    json_array_foreach(list, i, item)
    {
        const char *value = text_of(item, "value");
        const char *pattern = text_of(item, "pattern");

        console_line(text, "  %s   %s%s%s  (%s%s%s)", word, text_of(item, "name"),
                     json_object_get(item, "value") ? "=" : "", value, text_of(item, "reason"),
                     *pattern ? " " : "", pattern);
    }
}

static void print_environment(const struct explanation *explanation, struct buf *text)
{
    AUTO_JSON json_t *environment = explained_environment(
        &explanation->about, explanation->options.flags & EXPLAIN_WITH_VALUES);

    buf_append_str(text, "\nenvironment\n");
    print_variables(json_object_get(environment, "passed"), "pass", text);
    print_variables(json_object_get(environment, "dropped"), "drop", text);
}

/* --- the command, for people --- */

static const char patch_text[] =
    "it is a patch: Cordon applies it itself, in the sandbox and with an empty environment";

static void print_note(const char *name, const char *words, struct buf *text)
{
    if (words)
        console_line(text, "  %-8s %s", name, words);
}

static void print_command(const struct explained_command *command, struct buf *text)
{
    static const char *const outcomes[] = {
        [REQUIREMENT_SKIP] = "runs without a question",
        [REQUIREMENT_ASK] = "is asked about first",
        [REQUIREMENT_FORBID] = "is refused",
    };
    const struct explained *about = command->about;
    AUTO(buf_done) struct buf words = {.max = SIZE_MAX / 2};
    AUTO(buf_done) struct buf rules = {.max = SIZE_MAX / 2};

    for (size_t i = 0; command->argv[i]; i++)
        buf_appendf(&words, "%s%s", i ? " " : "", command->argv[i]);
    console_line(text, "command  %s", words.data);
    console_line(text, "  decision %s: %s", outcomes[command->requirement.outcome],
                 command->requirement.reason);
    print_note("runs", explained_command_place(command), text);
    if (about->approval_from)
        console_line(text, "  approval %s (from %s)",
                     approval_mode_name(about->execution->policy.mode), about->approval_from);
    else
        print_note("approval", "no policy: no question is asked, and only what rules forbid counts",
                   text);
    print_note("class", explained_command_class(command), text);
    print_note("bypass", explained_command_bypass(command), text);
    print_note("broken", explained_command_broken(command), text);
    print_note("patch", command->is_patch ? patch_text : NULL, text);
    buf_append_str(text, "  rules\n");
    rules_check_print(&command->check, &rules);
    console_lines(text, "    ", rules.data ? rules.data : "");
    buf_append_str(text, "\n");
}

static void print_field(const char *name, const char *value, struct buf *text)
{
    if (value)
        console_line(text, "  %-11s %s", name, value);
}

static void print_answer(const struct explain_answer *answer, struct buf *ret)
{
    console_line(ret, "%s: %s", answer->asked, answer->verdict);
    if (answer->canonical && !str_eq(answer->canonical, answer->asked))
        print_field("path", answer->canonical, ret);
    print_field("decided by", answer->decided_by, ret);
    print_field(answer->canonical ? "entry" : "rule", answer->entry, ret);
    print_field("reason", answer->reason, ret);
    print_field("note", answer->note, ret);
}

static void explain_print_text(const struct explanation *explanation, struct buf *ret)
{
    AUTO(buf_done) struct buf plan = {.max = SIZE_MAX / 2};

    if (explanation->command.argv)
        print_command(&explanation->command, ret);
    if (!(explanation->options.flags & (EXPLAIN_ALL | EXPLAIN_WITH_VALUES))) {
        explain_short_print(&explanation->about, ret);
        return;
    }
    print_profile(explanation, ret);
    print_entries(explanation, ret);
    print_defences(explanation, ret);
    print_environment(explanation, ret);
    if (!explanation->about.sandbox || explanation->settings.workspace->mode == SANDBOX_DISABLED)
        return;
    plan_print(sandbox_plan(explanation->about.sandbox), &plan);
    buf_append_str(ret, "\nplan\n");
    console_lines(ret, "  ", plan.data ? plan.data : "");
}

/* --- the command --- */

static void explanation_done(struct explanation *explanation)
{
    explained_command_done(&explanation->command);
    settings_done(&explanation->settings);
    run_layer_done(&explanation->layer); /* nothing ran in it: a new one goes */
    policy_options_done(&explanation->options.policy);
    strv_done(&explanation->options.layer.direct);
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
     .brief = "read (the default) or write",
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
     .brief = "What another profile adds and takes away",
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
     .brief = "The policy under which COMMAND is judged",
     .help = "The approval policy under which COMMAND is judged, as in cordon run."},
    {.name = NULL},
};

static const struct option output_options[] = {
    {.name = "all",
     INTO_FLAG(struct explain_options, flags, EXPLAIN_ALL),
     .brief = "Everything: each entry, layer and variable, and the plan",
     .help = "Shows everything: each entry and who wrote it, each layer, the variables, and the "
             "plan that the launcher carries out."},
    {.name = "values",
     INTO_FLAG(struct explain_options, flags, EXPLAIN_WITH_VALUES),
     .brief = "And the values of variables",
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
    {"Change layer", run_layer_options, offsetof(struct explain_options, layer)},
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
    const struct explain_options *options = &explanation->options;
    AUTO(explain_answer_done) struct explain_answer answer = {0};
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    bool is_json = explanation->options.flags & EXPLAIN_JSON;
    struct err err;
    int status;

    if (options->host && explain_host(&explanation->about, options->host, &answer, &err))
        return console_failf("--host: %s", err.msg);
    if (!options->host &&
        explain_path(&explanation->about, options->path, options->wanted, &answer, &err))
        return console_fail(&err);
    if (!is_json)
        print_answer(&answer, &text);
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
    status = print_text_or_json(
        &text, is_json ? explained_to_json(&explanation->about, command->argv ? command : NULL,
                                           explanation->options.flags & EXPLAIN_WITH_VALUES)
                       : NULL);
    if (status == EXIT_OK && !explanation->about.sandbox)
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

static int find_layer(const struct policy_options *policy, const struct config *config,
                      const char *dir, struct layer **ret, struct err *err)
{
    struct explanation *explanation = policy->find_layer_data;

    if (run_layer_open(&explanation->layer, policy, config, dir, err))
        return -1;
    *ret = explanation->layer.layer;
    return 0;
}

/* A machine that cannot enforce the profile is no failure of explaining it. */
static void explain_begin(struct explanation *explanation, char *const *argv)
{
    const struct settings *settings = &explanation->settings;
    struct workspace *workspace = settings->workspace;
    const bool is_made = workspace_probe(workspace, &explanation->refusal) == 0;

    settings_execution(settings, argv, &explanation->execution);
    explanation->about = (struct explained){
        .workspace = workspace,
        .sandbox = is_made ? workspace->sandbox : NULL,
        .refusal = &explanation->refusal,
        .execution = &explanation->execution,
        .approval_from = settings->approval_from,
        .config = settings->file.path,
        .home = settings->file.home,
        .dir = workspace->dir,
        .env = strv_view(&workspace->env),
        .env_report = &workspace->env_report,
        .warnings = strv_view(&settings->warnings),
    };
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
    explanation.layer.given = &options->layer;
    explanation.options.policy.find_layer = find_layer;
    explanation.options.policy.find_layer_data = &explanation;
    if (settings_init(&explanation.settings, &options->policy, &err))
        return console_fail(&err);
    explanation.options.policy.find_layer = NULL; /* of another profile it is the same */
    if (options->diff)
        return explain_other(&explanation);
    explain_begin(&explanation, rest);
    if (*rest)
        explained_command_init(&explanation.command, &explanation.about);
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
