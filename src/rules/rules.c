/* All rules together. What files hold is moved into three plain lists; an index by first word,
 * sorted once by rules_seal(), makes a decision independent of the number of rules. The strictest
 * match decides, so the order of files and layers means nothing but for host_executable.
 *
 * A broken file cannot be ignored: it may have forbidden what is being asked for. So it makes every
 * command that no rule matches a question, and of what stands before its error the rules that ask
 * or forbid stay. */
#include "rules/rules.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "rules/shell/command_class.h"
#include "rules/shell/command_inside.h"
#include "rules/shell/shell_words.h"

#include <stdlib.h>
#include <string.h>

/* One first word of one rule. */
struct entry {
    const char *word; /* of the rule */
    size_t rule;
};

struct rules {
    struct strv files;     /* names that rules point to */
    struct rules_file all; /* of all files; without their examples */
    struct rules_problem *problems;
    size_t problems_len;
    size_t problems_cap;
    struct entry *index; /* by word, then by rule */
    size_t index_len;
    size_t index_cap;
};

struct rules *rules_new(void)
{
    return alloc_zero(1, sizeof(struct rules));
}

void rules_free(struct rules *rules)
{
    if (!rules)
        return;
    for (size_t i = 0; i < rules->problems_len; i++) {
        free(rules->problems[i].file);
        free(rules->problems[i].text);
    }
    rules_file_done(&rules->all);
    free(rules->problems);
    free(rules->index);
    strv_done(&rules->files);
    free(rules);
}

/* --- adding --- */

/* Moves everything that is at least as strict. */
static void take_file(struct rules *rules, struct rules_file *file, enum rule_verdict least)
{
    for (size_t i = 0; i < file->prefixes_len; i++)
        if (file->prefixes[i].verdict >= least)
            rules_file_take_prefix(&rules->all, &file->prefixes[i]);
    for (size_t i = 0; i < file->hosts_len; i++)
        if (file->hosts[i].verdict >= least)
            rules_file_take_host(&rules->all, &file->hosts[i]);
    for (size_t i = 0; i < file->programs_len && least == RULE_NONE; i++)
        rules_file_take_program(&rules->all, &file->programs[i]);
}

int rules_add_text(struct rules *rules, const struct rules_origin *origin, const char *text,
                   size_t len, struct err *err)
{
    AUTO(rules_file_done) struct rules_file file;
    struct rules_origin own = *origin;
    int status;

    strv_push(&rules->files, origin->file);
    own.file = rules->files.items[rules->files.len - 1];
    status = rules_file_parse(&own, text, len, &file, err) || rules_file_check(&file, err) ? -1 : 0;
    take_file(rules, &file, status ? RULE_PROMPT : RULE_NONE);
    if (status)
        rules_add_problem(rules, origin, err->msg);
    return status;
}

void rules_add_problem(struct rules *rules, const struct rules_origin *origin, const char *text)
{
    rules->problems = alloc_grow(rules->problems, rules->problems_len, &rules->problems_cap,
                                 sizeof *rules->problems);
    rules->problems[rules->problems_len++] = (struct rules_problem){
        .layer = origin->layer, .file = alloc_str(origin->file), .text = alloc_str(text)};
}

bool rules_is_empty(const struct rules *rules)
{
    return !rules->all.prefixes_len && !rules->problems_len;
}

const struct rules_problem *rules_problems(const struct rules *rules, size_t *ret_len)
{
    *ret_len = rules->problems_len;
    return rules->problems;
}

static int entry_compare(const void *left, const void *right)
{
    const struct entry *a = left;
    const struct entry *b = right;
    int order = strcmp(a->word, b->word);

    return order ? order : (a->rule > b->rule) - (a->rule < b->rule);
}

void rules_seal(struct rules *rules)
{
    rules->index_len = 0;
    for (size_t i = 0; i < rules->all.prefixes_len; i++)
        for (size_t j = 0; j < rules->all.prefixes[i].words[0].len; j++) {
            rules->index =
                alloc_grow(rules->index, rules->index_len, &rules->index_cap, sizeof *rules->index);
            rules->index[rules->index_len++] =
                (struct entry){.word = rules->all.prefixes[i].words[0].items[j], .rule = i};
        }
    if (rules->index_len)
        qsort(rules->index, rules->index_len, sizeof *rules->index, entry_compare);
}

/* --- deciding --- */

/* The first entry for the word, or where it would be. */
static size_t find_entry(const struct rules *rules, const char *word)
{
    size_t low = 0;
    size_t high = rules->index_len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(rules->index[middle].word, word) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

enum rule_verdict rule_match_verdict(const struct rule_match *match)
{
    return match->fit == PREFIX_MAYBE ? RULE_PROMPT : match->rule->verdict;
}

/* It would let nearly anything out of the sandbox ("bash", "git"), so it lets nothing out. Codex's engine
 * does not heed such rules either. */
static bool is_too_wide(const struct rule_match *match, const struct shell_command *command)
{
    enum { BANNED_MAX = 2 }; /* words of a prefix that prefix_is_banned() knows */
    char *prefix[BANNED_MAX + 1] = {NULL};

    if (match->rule->verdict != RULE_BYPASS || match->rule->len > BANNED_MAX)
        return false;
    for (size_t i = 0; i < match->rule->len; i++)
        prefix[i] = command->words.items[i];
    return prefix_is_banned(prefix);
}

static void add_match(struct rules_decision *ret, const struct rule_match *match)
{
    enum rule_verdict verdict = rule_match_verdict(match);

    ret->items = alloc_grow(ret->items, ret->len, &ret->cap, sizeof *ret->items);
    ret->items[ret->len++] = *match;
    if (verdict > ret->verdict)
        ret->verdict = verdict;
}

/* Adds the rules for the word that are at least as strict. `name` as in struct rule_match. */
static void collect(const struct rules *rules, const struct shell_command *command,
                    const char *name, enum rule_verdict least, struct rules_decision *ret)
{
    const char *word = name ? name : command->words.items[0];
    size_t previous = SIZE_MAX; /* a rule may have the same alternative twice */

    for (size_t i = find_entry(rules, word);
         i < rules->index_len && str_eq(rules->index[i].word, word); i++) {
        struct rule_match match = {.rule = &rules->all.prefixes[rules->index[i].rule],
                                   .name = name};

        if (match.rule->verdict < least || rules->index[i].rule == previous)
            continue;
        previous = rules->index[i].rule;
        match.fit = prefix_rule_fit(match.rule, word, command);
        if (match.fit == PREFIX_FITS && is_too_wide(&match, command)) {
            ret->too_wide = match.rule;
            continue;
        }
        if (match.fit == PREFIX_FITS ||
            (match.fit == PREFIX_MAYBE && match.rule->verdict >= RULE_PROMPT))
            add_match(ret, &match);
    }
}

/* Of programs that are not known, of which there are more than any list has (`hyperfine git push`). A
 * prefix of one word is too often just a word. */
static void collect_further(const struct rules *rules, const struct shell_command *command,
                            struct rules_decision *ret)
{
    struct command_inside inside;

    command_inside_find(command->words.items, command->words.len, false, &inside);
    if (inside.is_runner || program_only_reads(command->words.items[0]))
        return; /* what it runs is judged by itself */
    for (size_t at = 1; at + 1 < command->exact; at++) {
        const char *word = command->words.items[at];
        const struct shell_command further = {
            .words = {.items = command->words.items + at, .len = command->words.len - at},
            .exact = command->exact - at};

        for (size_t i = find_entry(rules, word);
             i < rules->index_len && str_eq(rules->index[i].word, word); i++) {
            const struct prefix_rule *rule = &rules->all.prefixes[rules->index[i].rule];

            if (rule->verdict == RULE_FORBIDDEN && rule->len > 1 &&
                prefix_rule_fit(rule, word, &further) == PREFIX_FITS)
                add_match(ret, &(struct rule_match){.rule = rule, .fit = PREFIX_MAYBE, .at = at});
        }
    }
}

/* Rules for its base name may allow the program at this path. */
static bool is_meant_by_name(const struct rules *rules, const char *path)
{
    switch (host_program_find(rules->all.programs, rules->all.programs_len, path)) {
    case HOST_PROGRAM_LISTED:
        return true;
    case HOST_PROGRAM_UNKNOWN:
        return path_is_clean(path) && path_is_system_program(path);
    case HOST_PROGRAM_OTHER:
    default:
        return false;
    }
}

bool rules_list_program(const struct rules *rules, const char *path)
{
    return host_program_find(rules->all.programs, rules->all.programs_len, path) ==
           HOST_PROGRAM_LISTED;
}

void rules_decide(const struct rules *rules, const struct shell_command *command,
                  struct rules_decision *ret)
{
    const char *program = command->words.items[0];

    *ret = (struct rules_decision){.verdict = RULE_NONE};
    collect(rules, command, NULL, RULE_NONE, ret);
    if (strchr(program, '/'))
        collect(rules, command, path_name(program),
                !ret->len && is_meant_by_name(rules, program) ? RULE_NONE : RULE_PROMPT, ret);
    collect_further(rules, command, ret);
    if (!ret->len && rules->problems_len) {
        ret->verdict = RULE_PROMPT;
        ret->problem = &rules->problems[0];
    }
}

void rules_decision_done(struct rules_decision *decision)
{
    free(decision->items);
    *decision = (struct rules_decision){.verdict = RULE_NONE};
}

const struct rule_match *rules_decision_match(const struct rules_decision *decision)
{
    const struct rule_match *best = NULL;

    for (size_t i = 0; i < decision->len; i++)
        if (rule_match_verdict(&decision->items[i]) == decision->verdict &&
            (!best || decision->items[i].rule->len > best->rule->len))
            best = &decision->items[i];
    return best;
}

const struct host_rule *rules_hosts(const struct rules *rules, size_t *ret_len)
{
    *ret_len = rules->all.hosts_len;
    return rules->all.hosts;
}

const struct host_rule *rules_decide_host(const struct rules *rules, const char *host,
                                          enum rule_protocol protocol)
{
    const struct host_rule *strictest = NULL;

    for (size_t i = 0; i < rules->all.hosts_len; i++)
        if (rules->all.hosts[i].protocol == protocol && str_eq(rules->all.hosts[i].host, host) &&
            (!strictest || rules->all.hosts[i].verdict > strictest->verdict))
            strictest = &rules->all.hosts[i];
    return strictest;
}
