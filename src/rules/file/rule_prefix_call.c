/* prefix_rule(pattern, decision, sandbox, justification, match, not_match, reviewer): its
 * arguments. Source of names, defaults and limits: spec/exec-core.md 7.2; `sandbox` is our own. */
#include "rules/file/rule_draft.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "rules/file/rule_token.h"

#include <string.h>

/* One position of a pattern: a word or a list of them. */
static int add_position(struct rule_draft *draft, const struct rule_value *value, struct err *err)
{
    struct strv *words = &draft->prefix.words[draft->prefix.len++];

    if (value->kind == RULE_VALUE_STRING) {
        strv_push(words, value->text);
        return 0;
    }
    if (rule_draft_want_list(draft, value, "a position with alternatives", err))
        return -1;
    for (size_t i = 0; i < value->len; i++) {
        if (value->items[i].kind != RULE_VALUE_STRING)
            return rule_draft_fail(
                draft, &value->items[i], err,
                "alternatives are strings; a pattern has no lists inside of those");
        strv_push(words, value->items[i].text);
    }
    return 0;
}

static int set_pattern(struct rule_draft *draft, const struct rule_value *value, struct err *err)
{
    if (rule_draft_want_list(draft, value, "pattern", err))
        return -1;
    draft->prefix.words = alloc_zero(value->len, sizeof *draft->prefix.words);
    for (size_t i = 0; i < value->len; i++)
        if (add_position(draft, &value->items[i], err))
            return -1;
    if (strv_has(&draft->prefix.words[0], ""))
        return rule_draft_fail(draft, &value->items[0], err,
                               "no program has an empty name; the pattern begins with the program");
    return 0;
}

static int set_decision(struct rule_draft *draft, const struct rule_value *value, struct err *err)
{
    static const char *const words[] = {"allow", "prompt", "forbidden", NULL};
    static const enum rule_verdict verdicts[] = {RULE_BYPASS, RULE_PROMPT, RULE_FORBIDDEN};
    size_t word;

    if (rule_draft_word(draft, value, words, &word, err))
        return -1;
    draft->prefix.verdict = verdicts[word];
    return 0;
}

static int set_sandbox(struct rule_draft *draft, const struct rule_value *value, struct err *err)
{
    static const char *const words[] = {"bypass", "keep", NULL};
    size_t word;

    if (rule_draft_word(draft, value, words, &word, err))
        return -1;
    draft->sandbox = value;
    draft->grant = word == 0 ? RULE_BYPASS : RULE_KEEP;
    return 0;
}

static int set_reviewer(struct rule_draft *draft, const struct rule_value *value, struct err *err)
{
    static const char *const words[] = {"user", "auto_review", NULL};
    size_t word;

    if (rule_draft_word(draft, value, words, &word, err))
        return -1;
    draft->prefix.reviewer = word == 0 ? RULE_REVIEWER_USER : RULE_REVIEWER_AUTOMATIC;
    return 0;
}

static int set_match(struct rule_draft *draft, const struct rule_value *value, struct err *err)
{
    draft->match = value;
    return 0;
}

static int set_not_match(struct rule_draft *draft, const struct rule_value *value, struct err *err)
{
    draft->not_match = value;
    return 0;
}

/* An example is a list of words, or a text that is split like a shell's. */
static int read_example(const struct rule_draft *draft, const struct rule_value *value,
                        struct strv *words, struct err *err)
{
    const char *problem;

    if (value->kind == RULE_VALUE_STRING) {
        problem = rule_words_split(value->text, words);
        return problem ? rule_fail(draft->file->origin.file, value->place, err,
                                   "this example cannot be split into words: %s", problem)
                       : 0;
    }
    if (rule_draft_want_list(draft, value, "an example", err))
        return -1;
    for (size_t i = 0; i < value->len; i++) {
        if (value->items[i].kind != RULE_VALUE_STRING)
            return rule_draft_fail(draft, &value->items[i], err,
                                   "an example is a list of strings; write one word in each");
        strv_push(words, value->items[i].text);
    }
    return 0;
}

static int add_examples(struct rule_draft *draft, const struct rule_value *list, bool is_match,
                        struct err *err)
{
    struct rules_file *file = draft->file;

    if (list && list->kind != RULE_VALUE_LIST)
        return rule_draft_fail(draft, list, err,
                               "examples are a list of commands: [\"git status\", ...]");
    for (size_t i = 0; list && i < list->len; i++) {
        struct rule_example *example;

        file->examples = alloc_grow(file->examples, file->examples_len, &file->examples_cap,
                                    sizeof *file->examples);
        example = &file->examples[file->examples_len++];
        *example = (struct rule_example){
            .rule = file->prefixes_len, .is_match = is_match, .place = list->items[i].place};
        if (read_example(draft, &list->items[i], &example->words, err))
            return -1;
    }
    return 0;
}

static int finish_prefix(struct rule_draft *draft, struct err *err)
{
    struct rules_file *file = draft->file;

    if (draft->sandbox && draft->prefix.verdict != RULE_BYPASS)
        return rule_draft_fail(draft, draft->sandbox, err,
                               "sandbox says what \"allow\" grants; leave it out of other rules");
    if (draft->sandbox)
        draft->prefix.verdict = draft->grant;
    if (add_examples(draft, draft->not_match, false, err) ||
        add_examples(draft, draft->match, true, err))
        return -1;
    draft->prefix.justification = TAKE_PTR(draft->justification);
    file->prefixes =
        alloc_grow(file->prefixes, file->prefixes_len, &file->prefixes_cap, sizeof *file->prefixes);
    file->prefixes[file->prefixes_len++] = draft->prefix;
    draft->prefix = (struct prefix_rule){.len = 0};
    return 0;
}

static const struct rule_parameter prefix_parameters[] = {
    {"pattern", true, set_pattern},    {"decision", false, set_decision},
    {"sandbox", false, set_sandbox},   {"justification", false, rule_draft_justification},
    {"match", false, set_match},       {"not_match", false, set_not_match},
    {"reviewer", false, set_reviewer}, {NULL, false, NULL},
};

_Static_assert(sizeof prefix_parameters / sizeof *prefix_parameters <= RULE_PARAMETERS_MAX + 1,
               "RULE_PARAMETERS_MAX is too small");

const struct rule_function rule_function_prefix = {
    .name = "prefix_rule", .parameters = prefix_parameters, .finish = finish_prefix};
