/* `cordon rules check`: the decision about one command or host, as the executor makes it, with the
 * rules it comes from (rules/rules_check.h), for people or as JSON. */
#include "cli/rules.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/console.h"
#include "rules/rules.h"
#include "rules/rules_check.h"

#include <stdint.h>

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

static const char *verdict_meaning(enum rule_verdict verdict)
{
    static const char *const texts[] = {
        [RULE_NONE] = "no rule decides; the approval policy does",
        [RULE_BYPASS] = "allow, without a sandbox (sandbox = \"bypass\")",
        [RULE_KEEP] = "allow, in its sandbox (sandbox = \"keep\")",
        [RULE_PROMPT] = "prompt: somebody is asked first",
        [RULE_FORBIDDEN] = "forbidden",
    };

    return texts[verdict];
}

static void print_match(const struct rule_match *match, struct buf *text)
{
    AUTO_FREE char *pattern = prefix_rule_text(match->rule);
    const struct prefix_rule *rule = match->rule;
    const char *sandbox = rule_sandbox_name(rule->verdict);

    console_line(text, "    %s by `%s`, %s:%u (%s)%s%s%s%s%s%s", rule_decision_name(rule->verdict),
                 pattern, rule->file, rule->place.line, rule_layer_name(rule->layer),
                 sandbox ? ", sandbox = \"" : "", sandbox ? sandbox : "", sandbox ? "\"" : "",
                 match->fit == PREFIX_MAYBE ? ", if the shell expands it to that" : "",
                 rule->justification ? ": " : "", rule->justification ? rule->justification : "");
}

static void print_checked(const struct rules_checked *checked, struct buf *text)
{
    AUTO(buf_done) struct buf words;

    buf_init(&words, SIZE_MAX / 2);
    for (size_t i = 0; i < checked->command->words.len; i++)
        buf_appendf(&words, "%s%s", i ? " " : "", checked->command->words.items[i]);
    console_line(text, "  %s%s", words.data, checked->is_inside ? "   (inside)" : "");
    for (size_t i = 0; i < checked->decision.len; i++)
        print_match(&checked->decision.items[i], text);
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
    buf_appendf(text, "%s\n", verdict_meaning(rules_check_verdict(check)));
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

static int check_command(const struct rules *rules, const struct rules_options *options,
                         char **words)
{
    AUTO(rules_check_done) struct rules_check check;
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};

    rules_check_make(rules, words, &check);
    rules_check_print(&check, &text);
    return rules_print(options, rules_check_to_json(&check), &text);
}

static void rules_auto(struct rules **slot)
{
    rules_free(*slot);
}

int rules_check(const struct rules_options *options, char **words)
{
    AUTO(rules_source_done) struct rules_source source = {.options = options};
    AUTO(rules_auto) struct rules *rules = rules_new();
    struct err err;

    if (!options->host == !*words) {
        console_say("ask about a command (cordon rules check -- COMMAND...) or about a host "
                    "(--host NAME), one of them");
        return EXIT_FAILED;
    }
    if (rules_source_init(&source, options, &err) || load_rules(&source, rules, &err))
        return console_fail(&err);
    return options->host ? check_host(rules, options) : check_command(rules, options, words);
}
