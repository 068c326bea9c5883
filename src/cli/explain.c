/* `cordon explain`: everything that `cordon run` with the same options would do up to the launch,
 * printed instead of done; or the answer for one path or host.
 *
 * The plan and the layers are those of this machine: a sandbox is set up, with nothing in it, to
 * know which layers it really gives. */
#include "cli/explain.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/policy_options.h"
#include "sandbox/sandbox.h"

#include <stdint.h>

enum explain_flag { EXPLAIN_JSON = 1, EXPLAIN_WITH_VALUES = 2, EXPLAIN_FOR_WRITE = 4 };

struct explain_options {
    struct policy_options policy; /* first: its tables take it from there */
    const char *path;
    const char *host;
    unsigned flags; /* of enum explain_flag */
};

static void explain_options_done(struct explain_options *options)
{
    policy_options_done(&options->policy);
}

static void explanation_done(struct explanation *explanation)
{
    explained_command_done(&explanation->command);
    sandbox_free(explanation->sandbox);
    settings_done(&explanation->settings);
}

const struct access_map *explanation_access(const struct explanation *explanation)
{
    return explanation->sandbox && explanation->settings.mode != SANDBOX_DISABLED
               ? sandbox_access(explanation->sandbox)
               : &explanation->settings.access;
}

const char *explanation_kind_name(enum access_kind kind)
{
    static const char *const names[] = {
        [ACCESS_MISSING] = "missing", [ACCESS_DIR] = "folder", [ACCESS_FILE] = "file"};

    return names[kind];
}

/* A machine that cannot enforce the profile is no failure of explaining it. */
static int explanation_init(struct explanation *ret, const struct policy_options *options,
                            struct err *err)
{
    *ret = (struct explanation){.sandbox = NULL};
    if (settings_init(&ret->settings, options, err))
        return -1;
    ret->sandbox = settings_sandbox(&ret->settings, &ret->refusal);
    if (ret->sandbox && sandbox_probe(ret->sandbox, &ret->refusal)) {
        sandbox_free(ret->sandbox);
        ret->sandbox = NULL;
    }
    return 0;
}

/* --- options --- */

static int set_flag(void *data, enum explain_flag flag)
{
    ((struct explain_options *)data)->flags |= flag;
    return 0;
}

static int set_json(void *data, const char *value, struct err *err)
{
    return set_flag(data, EXPLAIN_JSON);
}

static int set_values(void *data, const char *value, struct err *err)
{
    return set_flag(data, EXPLAIN_WITH_VALUES);
}

static int set_access(void *data, const char *value, struct err *err)
{
    return str_eq(value, "write") ? set_flag(data, EXPLAIN_FOR_WRITE) : 0;
}

static int set_path(void *data, const char *value, struct err *err)
{
    if (!*value)
        return err_set(err, ERR_INVALID, "the path is empty");
    ((struct explain_options *)data)->path = value;
    return 0;
}

static int set_host(void *data, const char *value, struct err *err)
{
    if (!*value)
        return err_set(err, ERR_INVALID, "the name is empty");
    ((struct explain_options *)data)->host = value;
    return 0;
}

static const char *const access_words[] = {"read", "write", NULL};

static const struct option question_options[] = {
    {.name = "path",
     .value = "PATH",
     .set = set_path,
     .help = "Answers for one path: whether it may be read or written, the entry that decides, and "
             "who wrote that. The exit status is 0 when the access is allowed, else 1."},
    {.name = "for",
     .value = "ACCESS",
     .words = access_words,
     .set = set_access,
     .help = "The access that --path is about: read (the default) or write."},
    {.name = "host",
     .value = "NAME",
     .set = set_host,
     .help = "Answers for one host: whether it can be reached. Exit status as for --path."},
    {.name = NULL},
};

static const struct option approval_options[] = {
    {.name = "ask-for-approval",
     .letter = 'a',
     .value = "POLICY",
     .words = policy_approval_words,
     .set = policy_set_approval,
     .help = "The approval policy under which COMMAND is judged, as in cordon run."},
    {.name = NULL},
};

static const struct option output_options[] = {
    {.name = "values",
     .set = set_values,
     .help = "Also shows the values of the variables that would be passed."},
    {.name = "json", .letter = 'j', .set = set_json, .help = "Prints one JSON value."},
    {.name = NULL},
};

static const struct option_group explain_groups[] = {
    {"Question", question_options},
    {"Approval", approval_options},
    {"Output", output_options},
    {"Permissions", policy_permission_options},
    {"Environment", policy_environment_options},
    {NULL, NULL},
};

/* --- answers --- */

static int print_text_or_json(struct buf *text, json_t *json)
{
    int status = json ? console_print_json(json) : console_print(text);

    json_decref(json);
    return status;
}

static int answer(const struct explanation *explanation, const struct explain_options *options)
{
    AUTO(explain_answer_done) struct explain_answer answer = {0};
    AUTO(buf_done) struct buf text = {0};
    enum access wanted = options->flags & EXPLAIN_FOR_WRITE ? ACCESS_WRITE : ACCESS_READ;
    bool is_json = options->flags & EXPLAIN_JSON;
    struct err err;
    int status;

    if (options->host)
        explain_host(explanation, options->host, &answer);
    else if (explain_path(explanation, options->path, wanted, &answer, &err))
        return console_fail(&err);
    buf_init(&text, SIZE_MAX / 2);
    if (!is_json)
        explain_answer_print(&answer, &text);
    status = print_text_or_json(&text, is_json ? explain_answer_to_json(&answer) : NULL);
    if (status != EXIT_OK)
        return status;
    return answer.is_allowed ? EXIT_OK : EXIT_NO;
}

static bool is_refused(const struct explanation *explanation)
{
    const struct explained_command *command = &explanation->command;

    return command->argv && command->requirement.outcome == REQUIREMENT_FORBID;
}

static int explain_all(const struct explanation *explanation, unsigned flags)
{
    AUTO(buf_done) struct buf text;
    enum explain_values values = flags & EXPLAIN_WITH_VALUES ? EXPLAIN_VALUES : EXPLAIN_NAMES;
    int status;

    buf_init(&text, SIZE_MAX / 2);
    if (!(flags & EXPLAIN_JSON))
        explain_print_text(explanation, values, &text);
    status = print_text_or_json(&text,
                                flags & EXPLAIN_JSON ? explain_to_json(explanation, values) : NULL);
    if (status == EXIT_OK && !explanation->sandbox)
        return console_fail(&explanation->refusal);
    return status == EXIT_OK && is_refused(explanation) ? EXIT_NO : status;
}

static int explain_run(char **argv)
{
    AUTO(explain_options_done) struct explain_options options = {.flags = 0};
    AUTO(explanation_done) struct explanation explanation = {.sandbox = NULL};
    struct err err;
    char **rest;
    int status;

    if (!command_parse(&command_explain, argv, &options, &rest, &status))
        return status;
    if (!!options.path + !!options.host + !!*rest > 1) {
        console_say("--path, --host and COMMAND are different questions; ask one at a time");
        return EXIT_FAILED;
    }
    if (explanation_init(&explanation, &options.policy, &err))
        return console_fail(&err);
    if (*rest)
        explained_command_init(&explanation.command, &explanation.settings, rest,
                               explanation.sandbox);
    if (options.path || options.host)
        return answer(&explanation, &options);
    return explain_all(&explanation, options.flags);
}

const struct command command_explain = {
    .name = "explain",
    .summary = "show what a command would be allowed, and who decided it",
    .usage = "[OPTION]... [--path PATH | --host NAME | [--] COMMAND [ARGUMENT]...]",
    .about =
        "Shows what \"cordon run\" with the same options would do: the profile with the origin "
        "of every entry, the layers that hold on this machine, the variables that would be "
        "passed or left out and why, and the plan that the launcher carries out. With COMMAND it "
        "begins with what becomes of that: the rules that match and where they stand, whether "
        "it is known to be harmless or dangerous, whether somebody is asked, and whether it "
        "keeps its sandbox. Nothing is run.\n"
        "\n"
        "The exit status is 0, or 1 when --path or --host is answered with no or COMMAND would "
        "be refused, or 125 when the profile is wrong or cannot be enforced here.\n",
    .examples = "  cordon explain\n"
                "  cordon explain --profile dev --json | jq .plan\n"
                "  cordon explain --path .git/hooks/pre-commit --for write\n"
                "  cordon explain --host example.org\n"
                "  cordon explain -a on-request -- git push origin main\n"
                "  cordon explain --values | less\n",
    .page = "cordon-explain",
    .groups = explain_groups,
    .run = explain_run,
};
