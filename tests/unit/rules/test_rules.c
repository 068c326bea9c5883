/* rules: `.rules` files and what they say about commands (tests/cases/rules).
 *
 *     files      [{name, text (lines), layer, home}] that are loaded in order
 *     errors     [[text, message]]: each text is a file of its own that fails with exactly that
 *     problems   the texts of rules_problems()
 *     decisions  [{argv, exact, verdict, by: ["FILE:LINE"], name, problem}]
 *     hosts      [[host, protocol, "FILE:LINE allow" or null]] */
#include "../base/cases.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"
#include "rules/rules.h"
#include "rules/shell/shell_words.h"

#include <stdlib.h>
#include <string.h>

static void rules_auto(struct rules **slot)
{
    rules_free(*slot);
}

/* A text, or an array of lines. Caller frees. */
static char *text_of(const json_t *json)
{
    struct buf text;

    if (json_is_string(json))
        return alloc_str(json_string_value(json));
    buf_init(&text, 1 << 20);
    for (size_t i = 0; i < json_array_size(json); i++)
        buf_appendf(&text, "%s\n", json_string_value(json_array_get(json, i)));
    return buf_take(&text);
}

static enum rule_layer layer_of(const char *name)
{
    for (int layer = RULE_LAYER_USER; layer <= RULE_LAYER_OPTION; layer++)
        if (str_eq(rule_layer_name((enum rule_layer)layer), name))
            return (enum rule_layer)layer;
    fail_msg("\"%s\" is no layer", name);
    return RULE_LAYER_USER;
}

static void add_file(struct rules *rules, const json_t *json)
{
    static const char *const keys[] = {"name", "text", "layer", "home", NULL};
    AUTO_FREE char *text = text_of(json_object_get(json, "text"));
    const struct rules_origin origin = {
        .layer = layer_of(case_string_or(json, "layer", "user")),
        .file = case_string_or(json, "name", "x.rules"),
        .home = case_string_or(json, "home", NULL),
    };
    struct err err;

    case_check_keys(json, keys);
    (void)rules_add_text(rules, &origin, text, strlen(text), &err);
}

static void check_problems(const struct rules *rules, const json_t *wanted)
{
    AUTO_JSON json_t *got = json_array();
    size_t len;
    const struct rules_problem *problems = rules_problems(rules, &len);

    for (size_t i = 0; i < len; i++)
        json_array_append_new(got, json_string(problems[i].text));
    if (wanted || len)
        assert_json_equal(got, wanted);
}

static void check_errors(const json_t *errors)
{
    for (size_t i = 0; i < json_array_size(errors); i++) {
        const json_t *pair = json_array_get(errors, i);
        AUTO(rules_auto) struct rules *rules = rules_new();
        AUTO_FREE char *text = text_of(json_array_get(pair, 0));
        const struct rules_origin origin = {.file = "x.rules", .home = "/home/u"};
        struct err err;

        if (rules_add_text(rules, &origin, text, strlen(text), &err) == 0)
            fail_msg("%s\nis accepted", text);
        if (!str_eq(err.msg, json_string_value(json_array_get(pair, 1))))
            fail_msg("%s\nfails with\n%s\nwanted\n%s", text, err.msg,
                     json_string_value(json_array_get(pair, 1)));
        assert_int_equal(err.code, ERR_INVALID);
    }
}

static char *verdict_text(enum rule_verdict verdict)
{
    const char *sandbox = rule_sandbox_name(verdict);

    return alloc_strf("%s%s%s", rule_decision_name(verdict), sandbox ? " " : "",
                      sandbox ? sandbox : "");
}

static void check_matches(const struct rules_decision *decision, const json_t *json)
{
    AUTO_JSON json_t *by = json_array();
    const char *name = NULL;

    for (size_t i = 0; i < decision->len; i++) {
        const struct rule_match *match = &decision->items[i];

        json_array_append_new(by,
                              json_sprintf("%s:%u%s", match->rule->file, match->rule->place.line,
                                           match->fit == PREFIX_MAYBE ? " maybe" : ""));
        name = match->name;
    }
    if (json_object_get(json, "by") || decision->len)
        assert_json_equal(by, json_object_get(json, "by"));
    if (json_object_get(json, "name"))
        assert_string_equal(name, case_string(json, "name"));
}

static void check_decision(const struct rules *rules, const json_t *json)
{
    static const char *const keys[] = {"argv", "exact", "verdict", "by", "name", "problem", NULL};
    AUTO(strv_done) struct strv words = {0};
    AUTO(rules_decision_done) struct rules_decision decision;
    AUTO_FREE char **argv = case_strings(json, "argv");
    AUTO_FREE char *verdict = NULL;
    struct shell_command command;

    case_check_keys(json, keys);
    strv_push_all(&words, argv);
    command = (struct shell_command){.words = words, .exact = words.len};
    if (json_object_get(json, "exact"))
        command.exact = (size_t)json_integer_value(json_object_get(json, "exact"));
    rules_decide(rules, &command, &decision);
    verdict = verdict_text(decision.verdict);
    if (!str_eq(verdict, case_string(json, "verdict")))
        fail_msg("%s %s: got %s, wanted %s", argv[0], argv[1] ? argv[1] : "", verdict,
                 case_string(json, "verdict"));
    check_matches(&decision, json);
    assert_int_equal(decision.problem != NULL, json_object_get(json, "problem") != NULL);
    if (decision.problem)
        assert_contains(decision.problem->text, case_string(json, "problem"));
}

static void check_host(const struct rules *rules, const json_t *json)
{
    const char *text = json_string_value(json_array_get(json, 0));
    const json_t *wanted = json_array_get(json, 2);
    enum rule_protocol protocol = RULE_PROTOCOL_HTTP;
    const struct host_rule *rule;
    AUTO_FREE char *host = NULL;
    AUTO_FREE char *got = NULL;
    struct err err;

    assert_true(rule_protocol_parse(json_string_value(json_array_get(json, 1)), &protocol));
    host = host_rule_host(text, &err);
    if (!host)
        fail_msg("%s: %s", text, err.msg);
    rule = rules_decide_host(rules, host, protocol);
    if (rule)
        got =
            alloc_strf("%s:%u %s", rule->file, rule->place.line, rule_decision_name(rule->verdict));
    if (!str_eq(got ? got : "none", json_is_string(wanted) ? json_string_value(wanted) : "none"))
        fail_msg("%s: got %s", text, got ? got : "none");
}

static void rules_case(void **state)
{
    static const char *const keys[] = {"why",       "files", "errors", "problems",
                                       "decisions", "hosts", NULL};
    const json_t *json = ((const struct test_case *)*state)->json;
    AUTO(rules_auto) struct rules *rules = rules_new();
    const json_t *list;

    case_check_keys(json, keys);
    check_errors(json_object_get(json, "errors"));
    list = json_object_get(json, "files");
    for (size_t i = 0; i < json_array_size(list); i++)
        add_file(rules, json_array_get(list, i));
    check_problems(rules, json_object_get(json, "problems"));
    rules_seal(rules);
    list = json_object_get(json, "decisions");
    for (size_t i = 0; i < json_array_size(list); i++)
        check_decision(rules, json_array_get(list, i));
    list = json_object_get(json, "hosts");
    for (size_t i = 0; i < json_array_size(list); i++)
        check_host(rules, json_array_get(list, i));
}

/* --- what JSON cannot hold --- */

static void check_bytes(const char *text, size_t len, const char *message)
{
    AUTO(rules_auto) struct rules *rules = rules_new();
    const struct rules_origin origin = {.file = "x.rules"};
    struct err err;

    assert_int_equal(rules_add_text(rules, &origin, text, len, &err), -1);
    assert_string_equal(err.msg, message);
}

static void bytes_that_are_no_text(void **state)
{
    static const char nul[] = "A = \"x\"\nB = \"\0\"\n";

    check_bytes("A = \"\xff\"", 7, "x.rules:1:6: this byte is not UTF-8; the file has to be");
    check_bytes("# \xc3\xa4\n# \xc3", 8, "x.rules:2:3: this byte is not UTF-8; the file has to be");
    check_bytes(nul, sizeof nul - 1, "x.rules:2:6: a NUL byte; the file has to be text");
}

/* A list that doubles with every line, and one that is too deep, end in an error. */
static void what_grows_is_bounded(void **state)
{
    AUTO(buf_done) struct buf text;
    AUTO(rules_auto) struct rules *rules = rules_new();
    const struct rules_origin origin = {.file = "x.rules"};
    struct err err;

    buf_init(&text, 1 << 20);
    buf_append_str(&text, "A0 = [\"0123456789\"]\n");
    for (int i = 1; i < 60; i++)
        buf_appendf(&text, "A%d = A%d + A%d\n", i, i - 1, i - 1);
    assert_int_equal(rules_add_text(rules, &origin, text.data, text.len, &err), -1);
    assert_contains(err.msg, "the values up to here are too large");
    buf_clear(&text);
    for (int i = 0; i < 1000; i++)
        buf_append_str(&text, i ? "[" : "A = [");
    assert_int_equal(rules_add_text(rules, &origin, text.data, text.len, &err), -1);
    assert_string_equal(err.msg,
                        "x.rules:1:21: brackets are nested too deep; patterns need two levels");
}

static void names_are_counted(void **state)
{
    AUTO(buf_done) struct buf text;
    AUTO(rules_auto) struct rules *rules = rules_new();
    const struct rules_origin origin = {.file = "x.rules"};
    struct err err;

    buf_init(&text, 1 << 20);
    for (int i = 0; i < 1001; i++)
        buf_appendf(&text, "A%d = \"\"\n", i);
    assert_int_equal(rules_add_text(rules, &origin, text.data, text.len, &err), -1);
    assert_string_equal(err.msg, "x.rules:1001:7: there are too many names; write lists in place");
}

/* A megabyte is read, on one line or on many. */
static void large_files_are_read(void **state)
{
    for (int is_one_line = 0; is_one_line < 2; is_one_line++) {
        AUTO(buf_done) struct buf text;
        AUTO(rules_auto) struct rules *rules = rules_new();
        const struct rules_origin origin = {.file = "x.rules"};
        struct err err;

        buf_init(&text, 1 << 20);
        while (buf_appendf(&text, "prefix_rule([\"p%zu\", [\"a\", \"b\"]])%c", text.len,
                           is_one_line ? ';' : '\n'))
            ;
        if (rules_add_text(rules, &origin, text.data, text.len, &err))
            fail_msg("%s", err.msg);
    }
}

/* The end of a long name and the whole message are shown. */
static void long_file_names_leave_room(void **state)
{
    AUTO(rules_auto) struct rules *rules = rules_new();
    char name[400];
    struct rules_origin origin = {.file = name};
    struct err err;

    memset(name, 'd', sizeof name);
    memcpy(name + sizeof name - 9, "/x.rules", 9);
    assert_int_equal(rules_add_text(rules, &origin, "x", 1, &err), -1);
    assert_true(str_starts(err.msg, "...ddd"));
    assert_true(str_ends(err.msg, "d/x.rules:1:2: the end of the file is not expected here; "
                                  "behind a name comes = and a value, or ( and arguments"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_that_are_no_text),     cmocka_unit_test(what_grows_is_bounded),
        cmocka_unit_test(names_are_counted),          cmocka_unit_test(large_files_are_read),
        cmocka_unit_test(long_file_names_leave_room),
    };

    return cases_run("rules", rules_case, tests, sizeof tests / sizeof *tests);
}
