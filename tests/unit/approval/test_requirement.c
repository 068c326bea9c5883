/* requirement: the whole decision table (tests/cases/requirement/table.txt and retry.txt: every
 * cell exactly once), and single calls with their reasons.
 *
 *     rules      text (lines) of a rules file; "x.rules"
 *     requests   [{argv, policy, off, profile, permissions, flags, proposed,
 *                  outcome: "ask sandbox", cause, reason, proposal}] */
#include "../base/cases.h"

#include "approval/requirement.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"
#include "policy/profile.h"
#include "rules/rules.h"
#include "rules/shell/command_class.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const policies[] = {
    "never", "on-request", "untrusted", "granular", "granular-no-rules", "granular-no-sandbox",
};
static const char *const classes[] = {"safe", "plain", "dangerous"};
static const char *const rule_words[] = {"none", "keep", "bypass", "prompt", "forbidden", "broken"};
static const char *const profiles[] = {"sandbox",  "denied-reads", "none",
                                       "external", "missing",      "missing-denied-reads"};
static const enum confinement confinements[] = {
    CONFINEMENT_SANDBOX,  CONFINEMENT_DENIED_READS, CONFINEMENT_NONE,
    CONFINEMENT_EXTERNAL, CONFINEMENT_MISSING,      CONFINEMENT_MISSING_DENIED_READS,
};

#define LEN(array) (sizeof(array) / sizeof *(array))

static size_t index_of(const char *const *words, size_t len, const char *word)
{
    for (size_t i = 0; i < len; i++)
        if (str_eq(words[i], word))
            return i;
    fail_msg("\"%s\" is not one of \"%s\", ...", word, words[0]);
    return 0;
}

static void rules_auto(struct rules **slot)
{
    rules_free(*slot);
}

static struct rules *rules_of(const char *text)
{
    const struct rules_origin origin = {.file = "x.rules"};
    struct rules *rules = rules_new();
    struct err err;

    (void)rules_add_text(rules, &origin, text, strlen(text), &err);
    rules_seal(rules);
    return rules;
}

/* Every bare name is in /usr/bin; a path is what it says. */
static bool find_program(const struct program_finder *finder, const char *name, char **ret_found,
                         char **ret_real)
{
    *ret_found = strchr(name, '/') ? alloc_str(name) : alloc_strf("/usr/bin/%s", name);
    *ret_real = alloc_str(*ret_found);
    return true;
}

static const struct program_finder finder = {find_program};

static struct approval_policy policy_of(const char *name)
{
    struct approval_policy policy = {.mode = APPROVAL_GRANULAR,
                                     .questions = APPROVAL_QUESTIONS_ALL};
    struct err err;

    if (str_eq(name, "granular-no-rules"))
        policy.questions &= ~(unsigned)APPROVAL_QUESTION_RULES;
    else if (str_eq(name, "granular-no-sandbox"))
        policy.questions &= ~(unsigned)APPROVAL_QUESTION_SANDBOX;
    else if (approval_policy_parse(name, &policy, &err))
        fail_msg("%s", err.msg);
    return policy;
}

static char *outcome_text(const struct requirement *requirement, char separator)
{
    if (requirement->outcome == REQUIREMENT_FORBID)
        return alloc_str("forbid");
    return alloc_strf("%s%c%s", requirement_outcome_name(requirement->outcome), separator,
                      run_where_name(requirement->where));
}

/* --- the tables --- */

/* The words of the next line that is no comment; false at the end. */
static bool next_row(char **at, char **words, size_t len)
{
    while (**at) {
        char *line = *at;
        size_t size = strcspn(line, "\n");
        size_t count = 0;

        *at += size + (line[size] == '\n');
        line[size] = '\0';
        if (*line == '#')
            continue;
        for (char *word = line; *(word += strspn(word, " ")); count++) {
            if (count == len)
                fail_msg("too many words: %s", line);
            words[count] = word;
            word += strcspn(word, " ");
            if (*word)
                *word++ = '\0';
        }
        if (count != len)
            fail_msg("%zu words instead of %zu behind %s", count, len, words[0]);
        return true;
    }
    return false;
}

static struct rules *rules_for(size_t rule)
{
    static const char *const texts[] = {
        "prefix_rule([\"other\"], decision=\"forbidden\")",
        "prefix_rule([[\"cat\", \"make\", \"rm\"], [\"x\", \"-f\"]], sandbox=\"keep\")",
        "prefix_rule([[\"cat\", \"make\", \"rm\"], [\"x\", \"-f\"]])",
        "prefix_rule([[\"cat\", \"make\", \"rm\"], [\"x\", \"-f\"]], decision=\"prompt\")",
        "prefix_rule([[\"cat\", \"make\", \"rm\"], [\"x\", \"-f\"]], decision=\"forbidden\")",
        "prefix_rule([",
    };

    return rules_of(texts[rule]);
}

static char *decide_cell(const struct rules *rules, char **row, size_t column)
{
    static char words[][8] = {"cat", "make", "rm", "-f", "x"};
    char *const argvs[][4] = {
        {words[0], words[4]}, {words[1], words[4]}, {words[2], words[3], words[4]}};
    static const enum sandbox_permissions permissions[] = {
        SANDBOX_USE_DEFAULT, SANDBOX_ESCALATED, SANDBOX_WITH_ADDITIONAL, SANDBOX_WITH_ADDITIONAL};
    static const unsigned flags[] = {0, 0, REQUIREMENT_HAS_ADDITIONAL,
                                     REQUIREMENT_HAS_ADDITIONAL | REQUIREMENT_GRANTED};
    const struct requirement_request request = {
        .argv = argvs[index_of(classes, LEN(classes), row[1])],
        .finder = &finder,
        .rules = rules,
        .policy = policy_of(row[0]),
        .confinement = confinements[index_of(profiles, LEN(profiles), row[3])],
        .permissions = permissions[column],
        .flags = flags[column],
    };
    AUTO(requirement_done) struct requirement requirement;

    requirement_decide(&request, &requirement);
    assert_true(*requirement.reason);
    if (requirement.outcome == REQUIREMENT_SKIP && confinement_denies_reads(request.confinement))
        assert_int_not_equal(requirement.where, RUN_UNCONFINED);
    return outcome_text(&requirement, ':');
}

static void every_cell_of_the_table(void **state)
{
    static bool seen[LEN(policies)][LEN(classes)][LEN(rule_words)][LEN(profiles)];
    struct rules *rules[LEN(rule_words)];
    size_t len;
    AUTO_FREE char *text = case_text("requirement", "table.txt", &len);
    char *row[8];
    size_t rows = 0;

    for (size_t i = 0; i < LEN(rules); i++)
        rules[i] = rules_for(i);
    for (char *at = text; next_row(&at, row, LEN(row)); rows++) {
        size_t rule = index_of(rule_words, LEN(rule_words), row[2]);
        bool *slot = &seen[index_of(policies, LEN(policies), row[0])][index_of(
            classes, LEN(classes), row[1])][rule][index_of(profiles, LEN(profiles), row[3])];

        if (*slot)
            fail_msg("%s %s %s %s is there twice", row[0], row[1], row[2], row[3]);
        *slot = true;
        for (size_t column = 0; column < 4; column++) {
            AUTO_FREE char *got = decide_cell(rules[rule], row, column);

            if (!str_eq(got, row[4 + column]))
                fail_msg("%s %s %s %s, column %zu: got %s, wanted %s", row[0], row[1], row[2],
                         row[3], column + 1, got, row[4 + column]);
        }
    }
    assert_int_equal(rows, sizeof seen / sizeof(bool));
    for (size_t i = 0; i < LEN(rules); i++)
        rules_free(rules[i]);
}

static void every_retry(void **state)
{
    static const char *const tools[] = {"command", "patch"};
    static const char *const names[] = {"no", "ask", "yes"};
    static const char *const flags[] = {"-", "approved"};
    static bool seen[LEN(policies)][LEN(tools)][LEN(profiles)][LEN(flags)];
    size_t len;
    AUTO_FREE char *text = case_text("requirement", "retry.txt", &len);
    char *row[5];
    size_t rows = 0;

    for (char *at = text; next_row(&at, row, LEN(row)); rows++) {
        size_t tool = index_of(tools, LEN(tools), row[1]);
        size_t profile = index_of(profiles, LEN(profiles), row[2]);
        size_t flag = index_of(flags, LEN(flags), row[3]);
        bool *slot = &seen[index_of(policies, LEN(policies), row[0])][tool][profile][flag];
        const struct retry_request request = {.policy = policy_of(row[0]),
                                              .confinement = confinements[profile],
                                              .tool = (enum retry_tool)tool,
                                              .was_approved = flag == 1};
        enum retry_outcome outcome = requirement_retry(&request);
        AUTO_FREE char *got = outcome == RETRY_NO ? alloc_str("no")
                                                  : alloc_strf("%s:%s", names[outcome],
                                                               run_where_name(RUN_UNCONFINED));

        assert_false(*slot);
        *slot = true;
        if (!str_eq(got, row[4]))
            fail_msg("%s %s %s %s: got %s, wanted %s", row[0], row[1], row[2], row[3], got, row[4]);
    }
    assert_int_equal(rows, 5 * LEN(tools) * 3 * LEN(flags));
}

/* --- single calls --- */

static unsigned flags_of(const json_t *json)
{
    static const char *const names[] = {"has-additional", "granted", "approved", "forbids-only",
                                        "exec"};
    AUTO_FREE char **words = case_strings(json, "flags");
    unsigned flags = 0;

    for (size_t i = 0; words[i]; i++)
        flags |= 1U << index_of(names, LEN(names), words[i]);
    return flags;
}

static void check_answer(const json_t *json, const struct requirement *requirement)
{
    static const char *const causes[] = {"call",   "rule",   "problem", "danger",
                                         "safety", "policy", "approval"};
    AUTO_FREE char *outcome = outcome_text(requirement, ' ');
    AUTO_FREE char **proposal = case_strings(json, "proposal");

    if (!str_eq(outcome, case_string(json, "outcome")))
        fail_msg("%s: got %s because %s", case_string(json, "outcome"), outcome,
                 requirement->reason);
    assert_string_equal(causes[requirement->cause], case_string(json, "cause"));
    if (json_object_get(json, "reason"))
        assert_string_equal(requirement->reason, case_string(json, "reason"));
    assert_int_equal(requirement->rule != NULL, requirement->cause == REQUIREMENT_BY_RULE);
    for (size_t i = 0; proposal[i] || i < requirement->proposal.len; i++)
        assert_string_equal(proposal[i] ? proposal[i] : "(none)",
                            i < requirement->proposal.len ? requirement->proposal.items[i]
                                                          : "(none)");
}

static void check_request(const json_t *json, const struct rules *rules)
{
    static const char *const keys[] = {"argv",   "policy",   "profile", "permissions",
                                       "flags",  "proposed", "outcome", "cause",
                                       "reason", "proposal", NULL};
    AUTO_FREE char **argv = case_strings(json, "argv");
    AUTO_FREE char **proposed = case_strings(json, "proposed");
    struct requirement_request request = {
        .argv = argv,
        .finder = &finder,
        .rules = rules,
        .proposed = json_object_get(json, "proposed") ? proposed : NULL,
        .policy = policy_of(case_string_or(json, "policy", "on-request")),
        .confinement = confinements[index_of(profiles, LEN(profiles),
                                             case_string_or(json, "profile", "sandbox"))],
        .flags = flags_of(json),
    };
    AUTO(requirement_done) struct requirement requirement = {.reason = NULL};
    struct err err;

    case_check_keys(json, keys);
    if (sandbox_permissions_parse(case_string_or(json, "permissions", "use_default"),
                                  &request.permissions, &err))
        fail_msg("%s", err.msg);
    requirement_decide(&request, &requirement);
    check_answer(json, &requirement);
}

static void requirement_case(void **state)
{
    static const char *const keys[] = {"why", "rules", "requests", NULL};
    const json_t *json = ((const struct test_case *)*state)->json;
    AUTO_FREE char **lines = case_strings(json, "rules");
    AUTO(rules_auto) struct rules *rules = NULL;
    AUTO(buf_done) struct buf text;
    const json_t *requests = json_object_get(json, "requests");

    case_check_keys(json, keys);
    buf_init(&text, 1 << 20);
    buf_append_str(&text, "");
    for (size_t i = 0; lines[i]; i++)
        buf_appendf(&text, "%s\n", lines[i]);
    rules = rules_of(text.data);
    assert_true(json_array_size(requests) > 0);
    for (size_t i = 0; i < json_array_size(requests); i++)
        check_request(json_array_get(requests, i), rules);
}

/* --- what holds for all --- */

static const char *const rule_lines[] = {
    "prefix_rule([\"make\"])",
    "prefix_rule([[\"make\", \"cat\"]], sandbox=\"keep\")",
    "prefix_rule([\"bash\", \"-lc\"])",
    "prefix_rule([[\"rm\", \"sudo\"]])",
    "prefix_rule([\"make\", \"install\"], decision=\"prompt\")",
    "prefix_rule([\"rm\"], decision=\"forbidden\")",
    "prefix_rule([", /* last: what stands behind it would not count */
};

static struct rules *rules_of_set(unsigned set)
{
    AUTO(buf_done) struct buf text;

    buf_init(&text, 1 << 12);
    buf_append_str(&text, "");
    for (size_t i = 0; i < LEN(rule_lines); i++)
        if (set & 1U << i)
            buf_appendf(&text, "%s\n", rule_lines[i]);
    return rules_of(text.data);
}

struct verdict {
    enum requirement_outcome outcome;
    enum run_where where;
};

enum { COMMANDS = 7, VERDICTS = COMMANDS * LEN(policies) * LEN(profiles) };

/* Every command under every policy and profile. */
static void decide_all(unsigned set, struct verdict *ret)
{
    static const char *const commands[COMMANDS][4] = {
        {"make", "install"},
        {"/tmp/make"},
        {"sudo", "rm", "-f"},
        {"bash", "-lc", "cat x && make"},
        {"bash", "-lc", "make install; rm -rf x"},
        {"bash", "-lc", "for i in *; do rm -f $i; done"},
        {"bash", "-lc", "make $X > y"},
    };
    AUTO(rules_auto) struct rules *rules = rules_of_set(set);

    for (size_t i = 0; i < VERDICTS; i++) {
        const struct requirement_request request = {
            .argv = (char *const *)commands[i % COMMANDS],
            .finder = &finder,
            .rules = rules,
            .policy = policy_of(policies[i / COMMANDS % LEN(policies)]),
            .confinement = confinements[i / COMMANDS / LEN(policies)],
        };
        AUTO(requirement_done) struct requirement requirement;

        requirement_decide(&request, &requirement);
        ret[i] = (struct verdict){requirement.outcome, requirement.where};
    }
}

/* No rule that asks or forbids, and no broken file, makes anything milder, whatever other rules
 * there are; and none lets a command out of a sandbox that it would have stayed in. But a rule that
 * asks is asked, where the same question of the policy's own is switched off. */
static void stricter_rules_never_loosen(void **state)
{
    static struct verdict without[VERDICTS];
    static struct verdict with[VERDICTS];

    for (unsigned set = 0; set < 1U << LEN(rule_lines); set++) {
        decide_all(set, without);
        for (unsigned line = 4; line < LEN(rule_lines); line++) {
            decide_all(set | 1U << line, with);
            for (size_t i = 0; i < VERDICTS; i++) {
                const char *policy = policies[i / COMMANDS % LEN(policies)];

                if (with[i].outcome < without[i].outcome &&
                    !(line == 4 && str_eq(policy, "granular-no-sandbox")))
                    fail_msg("rule %u loosens command %zu under %s, profile %zu, rules %x", line,
                             i % COMMANDS, policy, i / COMMANDS / LEN(policies), set);
                if (with[i].outcome == REQUIREMENT_SKIP)
                    assert_int_equal(with[i].where, without[i].where);
            }
        }
    }
}

/* --- values --- */

static void words_of_policies(void **state)
{
    struct approval_policy policy;
    enum sandbox_permissions permissions;
    struct err err;

    assert_int_equal(approval_policy_parse("on-failure", &policy, &err), 0);
    assert_int_equal(policy.mode, APPROVAL_ON_REQUEST);
    for (int mode = APPROVAL_ON_REQUEST; mode <= APPROVAL_NEVER; mode++) {
        assert_int_equal(
            approval_policy_parse(approval_mode_name((enum approval_mode)mode), &policy, &err), 0);
        assert_int_equal(policy.mode, mode);
    }
    assert_int_equal(approval_policy_parse("always", &policy, &err), -1);
    assert_string_equal(err.msg, "\"always\" is no approval policy; there are untrusted, "
                                 "on-request, granular and never");
    assert_int_equal(sandbox_permissions_parse("none", &permissions, &err), -1);
    assert_contains(err.msg, "require_escalated");
}

static enum confinement confine(enum profile_kind kind, const struct access_map *access,
                                bool has_sandbox)
{
    const struct profile profile = {.kind = kind};

    return confinement_of(&profile, access, has_sandbox);
}

static void what_profiles_come_to(void **state)
{
    AUTO(access_map_done) struct access_map access = {.restricted = true};
    const struct access_map open = {.restricted = false};

    access_map_add(&access, "/", ACCESS_READ, ACCESS_DIR, "test");
    assert_int_equal(confine(PROFILE_MANAGED, &access, true), CONFINEMENT_SANDBOX);
    assert_int_equal(confine(PROFILE_MANAGED, &access, false), CONFINEMENT_MISSING);
    assert_int_equal(confine(PROFILE_MANAGED, &open, true), CONFINEMENT_NONE);
    assert_int_equal(confine(PROFILE_DISABLED, &access, true), CONFINEMENT_NONE);
    assert_int_equal(confine(PROFILE_EXTERNAL, &access, true), CONFINEMENT_EXTERNAL);
    access_map_add(&access, "/secret", ACCESS_DENY, ACCESS_DIR, "test");
    assert_int_equal(confine(PROFILE_MANAGED, &access, true), CONFINEMENT_DENIED_READS);
    assert_int_equal(confine(PROFILE_MANAGED, &access, false), CONFINEMENT_MISSING_DENIED_READS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cell_of_the_table),     cmocka_unit_test(every_retry),
        cmocka_unit_test(stricter_rules_never_loosen), cmocka_unit_test(words_of_policies),
        cmocka_unit_test(what_profiles_come_to),
    };

    return cases_run("requirement", requirement_case, tests, sizeof tests / sizeof *tests);
}
