/* `cordon rules`: what the rules say about a command or host, adding a rule, and running their
 * examples.
 *
 *     check   the decision as the executor makes it, with the rules it comes from
 *             (rules/rules_check.h), for people or as JSON
 *     add     appends one rule; unless it is told otherwise the rule spares the prompt and keeps the
 *             sandbox, and what it grants is said
 *     list, remove   rules_list.c
 *     test    every file and every example by itself, so that all that is wrong is shown at once;
 *             loading rules stops at the first
 */
#include "cli/rules.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "cli/command.h"
#include "cli/config_file.h"
#include "cli/console.h"
#include "rules/file/rules_file.h"
#include "rules/rules.h"
#include "rules/rules_check.h"
#include "rules/rules_disk.h"
#include "rules/shell/command_class.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int rules_source_init(struct rules_source *ret, const struct rules_options *options,
                      struct err *err)
{
    char *dir = getcwd(NULL, 0);
    struct rules_source source = {.options = options};
    struct rule_owner owner;

    if (!dir)
        return err_sys(err, "the current directory");
    if (config_file_load(NULL, dir, &source.config, err)) {
        free(dir);
        return -1;
    }
    owner = config_file_owner(&source.config);
    rule_layers_find(&owner, dir, &source.places, &source.project);
    free(dir);
    *ret = source;
    return 0;
}

void rules_source_done(struct rules_source *source)
{
    config_file_done(&source->config);
    free(source->project);
}

/* The protocol of the options, https without one. */
static enum rule_protocol rules_options_protocol(const struct rules_options *options)
{
    enum rule_protocol protocol = RULE_PROTOCOL_HTTPS;

    if (options->protocol)
        (void)rule_protocol_parse(options->protocol, &protocol); /* a word of the option's table */
    return protocol;
}

int rules_print(const struct rules_options *options, struct json_t *json, const struct buf *text)
{
    int status = options->wants_json ? console_print_json(json) : console_print(text);

    json_decref(json);
    return status;
}

/* --- check --- */

static int load_rules(const struct rules_source *source, struct rules *rules, struct err *err)
{
    const struct strv *files = &source->options->files;

    if (!files->len)
        rules_load_layers(rules, &source->places);
    for (size_t i = 0; i < files->len; i++)
        if (rules_load_file(rules, files->items[i], source->places.home, err))
            return -1;
    rules_seal(rules);
    return 0;
}

/* --- for people --- */

static void print_checked(const struct rules_checked *checked, struct buf *text)
{
    AUTO(buf_done) struct buf words = {.max = SIZE_MAX / 2};

    for (size_t i = 0; i < checked->command->words.len; i++)
        buf_appendf(&words, "%s%s", i ? " " : "", checked->command->words.items[i]);
    console_line(text, "  %s%s", words.data, checked->is_inside ? "   (inside)" : "");
    for (size_t i = 0; i < checked->decision.len; i++) {
        const struct rule_match *match = &checked->decision.items[i];
        const struct prefix_rule *rule = match->rule;
        const char *sandbox = rule_sandbox_name(rule->verdict);
        AUTO_FREE char *pattern = prefix_rule_text(rule);

        console_line(
            text, "    %s by `%s`, %s:%u (%s)%s%s%s%s%s%s", rule_decision_name(rule->verdict),
            pattern, rule->file, rule->place.line, rule_layer_name(rule->layer),
            sandbox ? ", sandbox = \"" : "", sandbox ? sandbox : "", sandbox ? "\"" : "",
            match->at                    ? ", if the program runs these words"
            : match->fit == PREFIX_MAYBE ? ", if the shell expands it to that"
                                         : "",
            rule->justification ? ": " : "", rule->justification ? rule->justification : "");
    }
    if (checked->decision.too_wide)
        console_line(
            text,
            "    %s:%u would let nearly anything out of the sandbox, so it allows nothing; "
            "name more words, or say sandbox = \"keep\"",
            checked->decision.too_wide->file, checked->decision.too_wide->place.line);
    if (!checked->decision.len)
        buf_append_str(text, "    no rule matches\n");
}

static void print_problems(const struct rules *rules, struct buf *text)
{
    size_t len;
    const struct rules_problem *problems = rules_problems(rules, &len);

    for (size_t i = 0; i < len; i++)
        console_line(text, "broken: %s", problems[i].text);
    if (len)
        buf_append_str(text, "Until that is mended, what no other rules file decides is asked "
                             "about.\n");
}

void rules_check_print(const struct rules_check *check, struct buf *text)
{
    static const char *const meanings[] = {
        [RULE_NONE] = "no rule decides; the approval policy does",
        [RULE_BYPASS] = "allow, without a sandbox (sandbox = \"bypass\")",
        [RULE_KEEP] = "allow, in its sandbox (sandbox = \"keep\")",
        [RULE_PROMPT] = "prompt: it is asked about first",
        [RULE_FORBIDDEN] = "forbidden",
    };

    buf_appendf(text, "%s\n", meanings[rules_check_verdict(check)]);
    for (size_t i = 0; i < check->len; i++)
        print_checked(&check->items[i], text);
    if (check->view.opaque)
        buf_appendf(text,
                    "Not all that it runs can be read (%s): of that only rules that ask or forbid "
                    "count.\n",
                    check->view.opaque);
    print_problems(check->rules, text);
}

/* --- hosts --- */

static int check_host(const struct rules *rules, const struct rules_options *options)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    AUTO_FREE char *host = NULL;
    const struct host_rule *rule;
    struct err err;

    host = host_rule_host(options->host, &err);
    if (!host)
        return console_fail(&err);
    rule = rules_decide_host(rules, host, rules_options_protocol(options));
    if (rule)
        console_line(&text, "%s by %s:%u (%s)%s%s", rule_decision_name(rule->verdict), rule->file,
                     rule->place.line, rule_layer_name(rule->layer),
                     rule->justification ? ": " : "",
                     rule->justification ? rule->justification : "");
    else
        buf_append_str(&text, "no rule decides; the profile does\n");
    print_problems(rules, &text);
    return rules_print(options, rules_check_host_to_json(rules, rule), &text);
}

static void rules_auto(struct rules **slot)
{
    rules_free(*slot);
}

/* The subcommands: `words` is what stands behind the options; an exit status. */
static int rules_check(const struct rules_options *options, char **words)
{
    AUTO(rules_source_done) struct rules_source source = {.options = options};
    AUTO(rules_auto) struct rules *rules = rules_new();
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    struct rules_check check;
    struct err err;
    int status;

    if (!options->host == !*words)
        return console_failf("ask about a command (cordon rules check -- COMMAND...) or about a "
                             "host (--host NAME), one of them");
    if (rules_source_init(&source, options, &err) || load_rules(&source, rules, &err))
        return console_fail(&err);
    if (options->host)
        return check_host(rules, options);
    rules_check_make(rules, words, &check);
    rules_check_print(&check, &text);
    status = rules_print(options, rules_check_to_json(&check), &text);
    rules_check_done(&check);
    return status;
}

/* --- add --- */

/* ERR_INVALID for a --sandbox that does not go with the decision. */
static int choose_verdict(const struct rules_options *options, enum rule_verdict *ret,
                          struct err *err)
{
    bool is_allow = !options->decision || str_eq(options->decision, "allow");

    if (options->sandbox && (!is_allow || options->host))
        return err_set(err, ERR_INVALID,
                       "--sandbox says what a command is granted that is allowed; leave it out of "
                       "other rules");
    if (!is_allow)
        *ret = str_eq(options->decision, "prompt") ? RULE_PROMPT : RULE_FORBIDDEN;
    else
        *ret = options->sandbox && str_eq(options->sandbox, "bypass") ? RULE_BYPASS : RULE_KEEP;
    return 0;
}

/* Caller frees; NULL on failure. */
static char *make_line(const struct rules_options *options, char **words, struct err *err)
{
    enum rule_verdict verdict = RULE_PROMPT;

    if (choose_verdict(options, &verdict, err))
        return NULL;
    if (!options->host)
        return rule_line_for_prefix(words, verdict, options->justification, err);
    return rule_line_for_host(options->host, rules_options_protocol(options), verdict,
                              options->justification, err);
}

/* The file that is appended to; caller frees. */
static char *choose_file(const struct rules_source *source, struct err *err)
{
    const struct strv *files = &source->options->files;
    AUTO_FREE char *dir = NULL;

    if (files->len > 1) {
        err_set(err, ERR_INVALID, "a rule is added to one file; give --rules once");
        return NULL;
    }
    if (files->len) {
        dir = getcwd(NULL, 0);
        return path_clean(dir ? dir : "/", files->items[0]);
    }
    if (!source->places.user) {
        err_set(err, ERR_INVALID, "the config directory is not known; set CORDON_HOME");
        return NULL;
    }
    dir = path_join(source->places.user, RULES_DIR);
    return path_join(dir, RULES_DEFAULT);
}

static int append(const struct rules_source *source, const char *line, const char *path)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    const char *wanted = source->options->decision;
    enum rules_append outcome;
    struct err err;

    if (rules_append(path, source->places.home, line, &outcome, &err))
        return console_fail(&err);
    console_line(&text, "%s %s", outcome == RULES_APPENDED ? "added to" : "already in", path);
    console_line(&text, "  %s", line);
    if (wanted && str_eq(wanted, "prompt") && !source->options->host)
        console_line(&text, "It is asked where somebody may be: with --ask-for-approval, or "
                            "approval_policy in config.toml; else it does not count.");
    return rules_print(source->options,
                       json_pack("{s:o, s:o, s:b}", "file", json_lossy(path), "rule",
                                 json_lossy(line), "added", outcome == RULES_APPENDED),
                       &text);
}

static int rules_add(const struct rules_options *options, char **words)
{
    AUTO(rules_source_done) struct rules_source source = {.options = options};
    AUTO_FREE char *line = NULL;
    AUTO_FREE char *path = NULL;
    bool is_allow, is_wide;
    struct err err;

    if (!options->host == !*words)
        return console_failf("say what the rule is about: cordon rules add -- WORD..., or --host "
                             "NAME");
    if (rules_source_init(&source, options, &err))
        return console_fail(&err);
    line = make_line(options, words, &err);
    path = line ? choose_file(&source, &err) : NULL;
    if (!path)
        return console_fail(&err);
    is_allow = !options->decision || str_eq(options->decision, "allow");
    is_wide = !options->host && is_allow && prefix_is_banned(words);
    if (is_wide && options->sandbox && str_eq(options->sandbox, "bypass"))
        return console_failf("a rule for all that %s can be made to run allows nothing without a "
                             "sandbox; name more words, or leave out --sandbox bypass",
                             words[0]);
    if (is_wide)
        console_say("this allows whatever %s can be made to run; a longer rule is safer", words[0]);
    return append(&source, line, path);
}

/* --- test --- */

struct report {
    struct buf text;
    json_t *files; /* array */
    size_t rules;
    size_t examples;
    size_t failures;
};

static void report_done(struct report *report)
{
    buf_done(&report->text);
    json_decref(report->files);
}

static void add_failure(struct report *report, json_t *failures, const struct err *err)
{
    console_line(&report->text, "%s", err->msg);
    json_array_append_new(failures, json_lossy(err->msg));
    report->failures++;
}

static void visit(void *data, const struct rules_origin *origin, const struct err *failure)
{
    struct report *report = data;
    AUTO(rules_file_done) struct rules_file file = {.prefixes = NULL};
    AUTO(buf_done) struct buf text = {.max = 0};
    json_t *failures = json_array();
    size_t rules;
    struct err err;

    if (failure)
        add_failure(report, failures, failure);
    else if (rules_read(origin->file, &text, &err) ||
             rules_file_parse(origin, text.data ? text.data : "", text.len, &file, &err))
        add_failure(report, failures, &err);
    for (size_t i = 0; i < file.examples_len; i++)
        if (rules_file_check_example(&file, &file.examples[i], &err))
            add_failure(report, failures, &err);
    rules = file.prefixes_len + file.hosts_len;
    report->rules += rules;
    report->examples += file.examples_len;
    json_array_append_new(report->files,
                          json_pack("{s:o, s:s, s:I, s:I, s:o}", "file", json_lossy(origin->file),
                                    "layer", rule_layer_name(origin->layer), "rules",
                                    (json_int_t)rules, "examples", (json_int_t)file.examples_len,
                                    "failures", failures));
}

static int rules_test(const struct rules_options *options, char **words)
{
    AUTO(rules_source_done) struct rules_source source = {.options = options};
    AUTO(report_done)
    struct report report = {.text = {.max = SIZE_MAX / 2}, .files = json_array()};
    const struct rules_visitor visitor = {.visit = visit, .data = &report};
    size_t files;
    struct err err;
    int status;

    if (!command_has_no_arguments(&command_rules, words, &status))
        return status;
    if (rules_source_init(&source, options, &err))
        return console_fail(&err);
    if (!options->files.len)
        rules_visit(&source.places, &visitor);
    for (size_t i = 0; i < options->files.len; i++) {
        const struct rules_origin origin = {.layer = RULE_LAYER_OPTION,
                                            .file = options->files.items[i],
                                            .home = source.places.home};

        visit(&report, &origin, NULL);
    }
    files = json_array_size(report.files);
    buf_appendf(&report.text, "%zu file%s, %zu rule%s, %zu example%s: %zu wrong\n", files,
                files == 1 ? "" : "s", report.rules, report.rules == 1 ? "" : "s", report.examples,
                report.examples == 1 ? "" : "s", report.failures);
    status = rules_print(
        options,
        json_pack("{s:O, s:I}", "files", report.files, "failures", (json_int_t)report.failures),
        &report.text);
    return status == EXIT_OK && report.failures ? EXIT_NO : status;
}

/* --- options --- */

static int set_justification(const struct option *option, void *member, const char *value,
                             struct err *err)
{
    if (!value[strspn(value, " \t\r\n")])
        return err_set(err, ERR_INVALID, "it is blank; give a reason or leave it out");
    *(const char **)member = value;
    return 0;
}

static void rules_options_done(struct rules_options *options)
{
    strv_done(&options->files);
}

static const char *const protocol_words[] = {"http", "https", "socks5_tcp", "socks5_udp", NULL};
static const char *const decision_words[] = {"allow", "prompt", "forbidden", NULL};
static const char *const grant_words[] = {"keep", "bypass", NULL};

static const struct option common_options[] = {
    {.name = "rules",
     .value = "FILE",
     INTO_LIST(struct rules_options, files),
     .help = "Takes this file instead of the layers; may be given several times. For \"add\": the "
             "file that the rule is added to, instead of rules/default.rules in the config "
             "directory."},
    {.name = "host",
     .value = "NAME",
     INTO_TEXT(struct rules_options, host),
     .brief = "About a host instead of a command",
     .help = "Asks about, adds or removes a rule for a host instead of a command."},
    {.name = "protocol",
     .value = "WORD",
     .words = protocol_words,
     INTO_TEXT(struct rules_options, protocol),
     .help = "How the host is reached: http, https (the default), socks5_tcp or socks5_udp."},
    {.name = "json",
     .letter = 'j',
     INTO_TRUE(struct rules_options, wants_json),
     .help = "Prints one JSON value."},
    {.name = NULL},
};

static const struct option add_options[] = {
    {.name = "decision",
     .value = "WORD",
     .words = decision_words,
     INTO_TEXT(struct rules_options, decision),
     .brief = "allow (the default), prompt or forbidden",
     .help = "What the rule says: allow (the default), prompt or forbidden. For \"remove\": of "
             "several, the one that says so."},
    {.name = "sandbox",
     .value = "WORD",
     .words = grant_words,
     INTO_TEXT(struct rules_options, sandbox),
     .brief = "keep (the default), or bypass: no sandbox",
     .help = "What \"allow\" grants: keep (the default), no prompt; or bypass, no sandbox either, "
             "which is what Codex means by \"allow\"."},
    {.name = "justification",
     .value = "TEXT",
     .set = set_justification,
     .offset = offsetof(struct rules_options, justification),
     .brief = "Why; shown when the rule asks or forbids",
     .help = "Why; shown when the rule asks or forbids."},
    {.name = NULL},
};

static const struct option_group rules_groups[] = {
    {"Options", common_options}, {"Adding", add_options}, {NULL, NULL}};

/* --- the command --- */

static const char *const check_takes[] = {"rules", "json", "host", "protocol", NULL};
static const char *const add_takes[] = {"rules",    "json",    "host",          "protocol",
                                        "decision", "sandbox", "justification", NULL};
static const char *const test_takes[] = {"rules", "json", NULL};
static const char *const remove_takes[] = {"rules", "json", "host", "protocol", "decision", NULL};

static const char *const rules_words[] = {"check", "add", "list", "remove", "test", NULL};

/* In the order of the words. */
static const struct subcommand {
    const char *const *takes; /* the options that mean something to it; others are refused */
    int (*run)(const struct rules_options *options, char **words);
} subcommands[] = {
    {check_takes, rules_check},   {add_takes, rules_add},   {test_takes, rules_list},
    {remove_takes, rules_remove}, {test_takes, rules_test},
};

static bool is_meaningful(int which, const struct rules_options *options)
{
    for (const struct option_group *group = rules_groups; group->options; group++)
        for (const struct option *option = group->options; option->name; option++) {
            const char *member = (const char *)options + option->offset;
            /* a text or a list has a pointer in front, which is NULL when nothing was given */
            bool is_given = option->kind == OPTION_TRUE
                                ? *(const bool *)member
                                : *(const void *const *)(const void *)member != NULL;
            const char *const *taken = subcommands[which].takes;

            while (*taken && !str_eq(*taken, option->name))
                taken++;
            if (is_given && !*taken) {
                console_say("--%s means nothing to \"cordon rules %s\"", option->name,
                            rules_words[which]);
                return false;
            }
        }
    if (options->protocol && !options->host) {
        console_say("--protocol is about a host; add --host NAME");
        return false;
    }
    return true;
}

static int rules_run(char **argv)
{
    AUTO(rules_options_done) struct rules_options options = {.host = NULL};
    char **rest;
    int status, which;

    if (!argv[1] || *argv[1] == '-') {
        if (command_parse(&command_rules, argv, &options, &rest, &status))
            status = console_failf("what about the rules? cordon rules check -- COMMAND, add, "
                                   "list, remove or test (\"cordon help rules\" explains)");
        return status;
    }
    which = command_find_word(&command_rules, argv[1]);
    if (which < 0)
        return EXIT_FAILED;
    if (!command_parse(&command_rules, argv + 1, &options, &rest, &status))
        return status;
    return is_meaningful(which, &options) ? subcommands[which].run(&options, rest) : EXIT_FAILED;
}

const struct command command_rules = {
    .name = "rules",
    .summary = "tell what the rules say about a command; list, add, remove and test them",
    .usage = "check|add|list|remove|test [OPTION]... [--] [COMMAND...|NUMBER]",
    .words = rules_words,
    .about =
        "Rules allow, forbid, or ask about commands that begin with certain words. They stand in "
        "files named *.rules: in the directory rules of the config directory (yours), in "
        ".cordon/rules "
        "and .codex/rules of a project that you trust, and in /etc/cordon/rules (the "
        "administrator's). The strictest rule that matches decides, wherever it stands. A file "
        "that cannot be read or parsed allows nothing: what no other file decides is asked about, "
        "because that file may forbid it.\n"
        "\n"
        "\"check\" tells what they say about a command, with file and line, and whether it would "
        "keep its sandbox. Of a shell's script every command is judged. \"add\" appends a rule for "
        "all commands that begin with the given words. \"list\" shows all rules with their file "
        "and line, \"remove\" takes one away again: by its number in the list, or by its words. "
        "\"test\" runs the examples (match, not_match) of all rules.\n"
        "\n"
        "The exit status is 0 when the question was answered, whatever the answer; for \"test\" 1 "
        "when an example does not hold or a file is broken; 125 when it could not be done.\n",
    .examples =
        "  cordon rules check -- git push origin\n"
        "  cordon rules check --json -- bash -lc 'make && make install'\n"
        "  cordon rules check --host example.org\n"
        "  cordon rules add -- npm test\n"
        "  cordon rules add --decision forbidden --justification 'use the mirror' -- git push\n"
        "  cordon rules list\n"
        "  cordon rules remove -- git push\n"
        "  cordon rules test --rules ./project.rules\n",
    .page = "cordon-rules",
    .groups = rules_groups,
    .run = rules_run,
};
