/* See rules_check.h. */
#include "rules/rules_check.h"

#include "base/alloc.h"
#include "base/json.h"

#include <stdlib.h>

/* Nothing is said about a whole script when nothing is said about one of its commands, unless
 * another one is to be asked about or forbidden. */
enum rule_verdict rules_check_verdict(const struct rules_check *check)
{
    return check->has_undecided && check->strictest < RULE_PROMPT ? RULE_NONE : check->strictest;
}

static void add_command(struct rules_check *check, const struct shell_command *command,
                        bool is_inside)
{
    struct rules_checked checked = {.command = command, .is_inside = is_inside};
    enum rule_verdict verdict;

    rules_decide(check->rules, command, &checked.decision);
    verdict = checked.decision.verdict;
    if (is_inside && (verdict < RULE_PROMPT || checked.decision.problem)) {
        rules_decision_done(&checked.decision);
        return;
    }
    check->has_undecided |= verdict == RULE_NONE;
    if (verdict > check->strictest)
        check->strictest = verdict;
    check->items = alloc_grow(check->items, check->len, &check->cap, sizeof *check->items);
    check->items[check->len++] = checked;
}

void rules_check_make(const struct rules *rules, char *const *words, struct rules_check *ret)
{
    *ret = (struct rules_check){.rules = rules};
    command_view_make(words, &ret->view);
    for (size_t i = 0; i < ret->view.commands.len; i++)
        add_command(ret, &ret->view.commands.items[i], false);
    for (size_t i = 0; i < ret->view.inside.len; i++)
        add_command(ret, &ret->view.inside.items[i], true);
}

void rules_check_done(struct rules_check *check)
{
    for (size_t i = 0; i < check->len; i++)
        rules_decision_done(&check->items[i].decision);
    free(check->items);
    command_view_done(&check->view);
}

/* --- for programs --- */

static json_t *words_to_json(const char *first, const struct strv *words, size_t len)
{
    json_t *json = json_array();

    for (size_t i = 0; i < len; i++)
        json_array_append_new(json, json_lossy(i == 0 && first ? first : words->items[i]));
    return json;
}

/* Only when there is something to say, as Codex does. */
static void set_text(json_t *json, const char *key, const char *text)
{
    if (text)
        json_object_set_new(json, key, json_lossy(text));
}

static void set_place(json_t *json, enum rule_layer layer, const char *file,
                      struct rule_place place)
{
    json_object_set_new(json, "layer", json_string(rule_layer_name(layer)));
    json_object_set_new(json, "file", json_lossy(file));
    json_object_set_new(json, "line", json_integer(place.line));
    json_object_set_new(json, "column", json_integer(place.column));
}

static void set_place_of(json_t *json, const char *key, const struct prefix_rule *rule)
{
    json_t *place = json_object();

    set_place(place, rule->layer, rule->file, rule->place);
    json_object_set_new(json, key, place);
}

static json_t *match_to_json(const struct rules_checked *checked, const struct rule_match *match)
{
    const struct strv *words = &checked->command->words;
    const struct strv left = {.items = words->items + match->at, .len = words->len - match->at};
    size_t len = match->rule->len < left.len ? match->rule->len : left.len;
    json_t *json = json_object();

    json_object_set_new(json, "matchedPrefix", words_to_json(match->name, &left, len));
    json_object_set_new(json, "decision",
                        json_string(rule_decision_name(rule_match_verdict(match))));
    set_text(json, "resolvedProgram", match->name ? words->items[0] : NULL);
    set_text(json, "justification", match->rule->justification);
    set_text(json, "sandbox", rule_sandbox_name(rule_match_verdict(match)));
    set_text(json, "reviewer",
             match->rule->reviewer == RULE_REVIEWER_AUTOMATIC ? "auto_review" : NULL);
    if (match->fit == PREFIX_MAYBE)
        json_object_set_new(json, "maybe", json_true());
    set_place(json, match->rule->layer, match->rule->file, match->rule->place);
    return json_pack("{s:o}", "prefixRuleMatch", json);
}

static json_t *problems_to_json(const struct rules *rules)
{
    json_t *json = json_array();
    size_t len;
    const struct rules_problem *problems = rules_problems(rules, &len);

    for (size_t i = 0; i < len; i++)
        json_array_append_new(
            json, json_pack("{s:s, s:o, s:o}", "layer", rule_layer_name(problems[i].layer), "file",
                            json_lossy(problems[i].file), "error", json_lossy(problems[i].text)));
    return json;
}

static void set_verdict(json_t *json, enum rule_verdict verdict)
{
    set_text(json, "decision", verdict == RULE_NONE ? NULL : rule_decision_name(verdict));
    set_text(json, "sandbox", rule_sandbox_name(verdict));
}

json_t *rules_check_to_json(const struct rules_check *check)
{
    json_t *json = json_object();
    json_t *matches = json_array();
    json_t *list = json_array();

    for (size_t i = 0; i < check->len; i++) {
        const struct rules_checked *checked = &check->items[i];
        json_t *command = json_object();

        for (size_t m = 0; m < checked->decision.len; m++)
            json_array_append_new(matches, match_to_json(checked, &checked->decision.items[m]));
        json_object_set_new(
            command, "argv",
            words_to_json(NULL, &checked->command->words, checked->command->words.len));
        json_object_set_new(command, "inside", json_boolean(checked->is_inside));
        set_verdict(command, checked->decision.verdict);
        if (checked->decision.too_wide)
            set_place_of(command, "tooWide", checked->decision.too_wide);
        json_array_append_new(list, command);
    }
    json_object_set_new(json, "matchedRules", matches);
    set_verdict(json, rules_check_verdict(check));
    json_object_set_new(json, "commands", list);
    json_object_set_new(json, "opaque", json_lossy(check->view.opaque));
    json_object_set_new(json, "problems", problems_to_json(check->rules));
    return json;
}

json_t *rules_check_host_to_json(const struct rules *rules, const struct host_rule *rule)
{
    json_t *json = json_object();
    json_t *matches = json_array();

    if (rule) {
        json_t *match = json_pack("{s:s, s:s, s:s}", "host", rule->host, "protocol",
                                  rule_protocol_name(rule->protocol), "decision",
                                  rule_decision_name(rule->verdict));

        set_text(match, "justification", rule->justification);
        set_place(match, rule->layer, rule->file, rule->place);
        json_array_append_new(matches, json_pack("{s:o}", "networkRuleMatch", match));
        json_object_set_new(json, "decision", json_string(rule_decision_name(rule->verdict)));
    }
    json_object_set_new(json, "matchedRules", matches);
    json_object_set_new(json, "problems", problems_to_json(rules));
    return json;
}
