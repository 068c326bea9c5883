/* ere: the same matches as glibc's regexec() where both know the syntax, and linear time. */
#include "../base/support.h"
#include "script.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "exec/ere.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void ere_free_slot(struct ere **slot)
{
    ere_free(*slot);
}

/* What the pattern finds, between brackets; "-" for nothing. */
static const char *find(const char *pattern, const char *text, unsigned flags)
{
    static char marked[300];
    struct err err = ERR_UNTOUCHED;
    AUTO(ere_free_slot) struct ere *ere = ere_new(pattern, &err);
    struct ere_span span;

    if (!ere) {
        snprintf(marked, sizeof marked, "%s", err.msg);
        return marked;
    }
    if (!ere_find(ere, text, strlen(text), flags, &span))
        return "-";
    snprintf(marked, sizeof marked, "%.*s[%.*s]%s", (int)span.at, text, (int)span.len,
             text + span.at, text + span.at + span.len);
    return marked;
}

static const struct example {
    const char *pattern;
    const char *text;
    const char *found;
} examples[] = {
    {"b", "abc", "a[b]c"},
    {"", "abc", "[]abc"},
    {"a*", "baa", "[]baa"},
    {"a+", "baa", "b[aa]"},
    {"ab?c", "xacabc", "x[ac]abc"},
    {"a.c", "abc", "[abc]"},
    {"^b", "ab", "-"},
    {"^a", "ab", "[a]b"},
    {"b$", "ab", "a[b]"},
    {"a$", "ab", "-"},
    {"^$", "", "[]"},
    {"a|b|cd", "xcd", "x[cd]"},
    {"ab|abcd|abc", "abcde", "[abcd]e"}, /* the longest, not the first */
    {"abcd|c", "abcx", "ab[c]x"},
    {"x*|b", "b", "[b]"},
    {"(ab)*c", "ababc", "[ababc]"},
    {"(a|b)+c", "xabac", "x[abac]"},
    {"(a|)b", "b", "[b]"},
    {"(a*)*", "aa", "[aa]"},
    {"(a*)+b", "aab", "[aab]"},
    {"()b", "ab", "a[b]"},
    {"(){12}b", "ab", "a[b]"},
    {"()*()+()?b", "ab", "a[b]"},
    {"a{2}", "aaa", "[aa]a"},
    {"a{2,}", "aaa", "[aaa]"},
    {"a{1,2}", "aaa", "[aa]a"},
    {"a{0}b", "ab", "a[b]"},
    {"a{0,2}b", "aaab", "a[aab]"},
    {"(ab){2}", "ababab", "[abab]ab"},
    {"(a|bc){2,3}", "bcabca", "[bcabc]a"},
    {"x{", "x{", "[x{]"},
    {"x{,3}", "x{,3}", "[x{,3}]"},
    {"a**", "aa", "[aa]"},
    {"[abc]+", "xcabx", "x[cab]x"},
    {"[^abc]+", "axyb", "a[xy]b"},
    {"[a-c]+", "xabcd", "x[abc]d"},
    {"[]a]+", "x]a", "x[]a]"},
    {"[^]a]+", "]xa", "][x]a"},
    {"[a-]+", "x-a", "x[-a]"},
    {"[[:digit:]]+", "ab12c", "ab[12]c"},
    {"[[:alpha:]_]+", "1a_b2", "1[a_b]2"},
    {"[\\d]+", "\\d1", "[\\d]1"}, /* a backslash is plain between brackets */
    {"\\d+", "ab12c", "ab[12]c"},
    {"\\D+", "12ab", "12[ab]"},
    {"\\w+", "- a_1 -", "- [a_1] -"},
    {"\\W", "a-", "a[-]"},
    {"a\\sb", "a\tb", "[a\tb]"},
    {"\\S+", " ab ", " [ab] "},
    {"\\bcat\\b", "concat cat", "concat [cat]"},
    {"\\Bcat", "cat concat", "cat con[cat]"},
    {"\\.", "a.b", "a[.]b"},
    {"a\\tb", "a\tb", "[a\tb]"},
    {"\\$\\^\\|\\(\\{\\\\", "$^|({\\", "[$^|({\\]"},
    {"caf\xc3\xa9", "un caf\xc3\xa9", "un [caf\xc3\xa9]"},
    {"error(:|\\[E[0-9]{4}\\])", "x error[E0308]: no", "x [error[E0308]]: no"},
};

static void finds_the_leftmost_and_longest(void **state)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const struct example *example = &examples[i];
        const char *found = find(example->pattern, example->text, 0);

        if (strcmp(found, example->found) != 0)
            fail_msg("%s in %s: %s instead of %s", example->pattern, example->text, found,
                     example->found);
    }
}

static void anchors_know_when_the_line_goes_on(void **state)
{
    assert_string_equal(find("^a", "a", ERE_NOT_BEGIN), "-");
    assert_string_equal(find("a$", "a", ERE_NOT_BEGIN), "[a]");
    assert_string_equal(find("a$", "a", ERE_NOT_END), "-");
    assert_string_equal(find("^a", "a", ERE_NOT_END), "[a]");
}

static const struct mistake {
    const char *pattern;
    const char *message;
} mistakes[] = {
    {"a(b", "byte 4: \"(\" has no \")\""},
    {"ab)", "byte 3: \")\" has no \"(\""},
    {"*a", "byte 1: there is nothing to repeat"},
    {"a|+", "byte 3: there is nothing to repeat"},
    {"(?:a)", "byte 2: there is nothing to repeat"},
    {"a{2,1}", "not a repetition"},
    {"a{1", "not a repetition"},
    {"a{256}", "more than 255 repetitions"},
    {"a{1,99999999999}", "more than 255 repetitions"},
    {"[a", "\"[\" has no \"]\""},
    {"[]", "\"[\" has no \"]\""},
    {"[b-a]", "a range goes backwards"},
    {"[[:letter:]]", "no such class"},
    {"[[.a.]]", "collating symbols are not supported"},
    {"(a)\\1", "byte 4: back-references are not supported"},
    {"a\\q", "no such escape"},
    {"a\\", "no such escape"},
    {"((a{100}){100}){2}", "too large when its repetitions are written out"},
};

static void mistakes_are_explained(void **state)
{
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        struct err err = ERR_UNTOUCHED;

        assert_null(ere_new(mistakes[i].pattern, &err));
        assert_int_equal(err.code, ERR_INVALID);
        assert_contains(err.msg, mistakes[i].message);
    }
}

static void limits_of_a_pattern(void **state)
{
    char pattern[ERE_PATTERN_MAX + 2];
    struct err err;

    memset(pattern, 'a', sizeof pattern);
    pattern[ERE_PATTERN_MAX + 1] = '\0';
    assert_null(ere_new(pattern, &err));
    assert_contains(err.msg, "longer than 1024 bytes");
    pattern[ERE_PATTERN_MAX] = '\0';
    ere_free(ere_new(pattern, &err));
    memset(pattern, '(', ERE_DEPTH_MAX);
    pattern[ERE_DEPTH_MAX] = '\0';
    assert_null(ere_new(pattern, &err));
    assert_contains(err.msg, "too many groups inside each other");
}

/* --- against glibc --- */

static void add(char *pattern, const char *part)
{
    size_t len = strlen(pattern);

    snprintf(pattern + len, 100 - len, "%s", part);
}

/* A well-formed pattern over the letters a, b and c. */
static void make_pattern(struct script *script, char pattern[100])
{
    static const char *const atoms[] = {"a",    "b",      "c",      ".",      "[ab]",
                                        "[^a]", "(a|bc)", "(b*|c)", "(ab|a)", "(a|b|)"};
    static const char *const repetitions[] = {"", "", "", "*", "+", "?", "{2}", "{1,2}", "{0,2}"};
    uint64_t pieces = 1 + script_random(script, 5);

    pattern[0] = '\0';
    if (!script_random(script, 8))
        add(pattern, "^");
    for (uint64_t i = 0; i < pieces; i++) {
        add(pattern, atoms[script_random(script, sizeof atoms / sizeof *atoms)]);
        add(pattern, repetitions[script_random(script, sizeof repetitions / sizeof *repetitions)]);
        if (i + 1 < pieces && !script_random(script, 6))
            add(pattern, "|");
    }
    if (!script_random(script, 8))
        add(pattern, "$");
}

static void agrees_with_glibc(void **state)
{
    struct script script;

    script_init(&script, 11);
    for (int round = 0; round < 20000; round++) {
        AUTO(ere_free_slot) struct ere *ere = NULL;
        char pattern[100];
        char text[13] = "";
        struct ere_span span = {0};
        regmatch_t theirs;
        regex_t regex;
        struct err err;
        bool found;

        make_pattern(&script, pattern);
        for (size_t i = (size_t)script_random(&script, sizeof text); i-- > 0;)
            text[i] = "abc"[script_random(&script, 3)];
        ere = ere_new(pattern, &err);
        if (!ere)
            fail_msg("%s: %s", pattern, err.msg);
        assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED), 0);
        found = ere_find(ere, text, strlen(text), 0, &span);
        assert_int_equal(regexec(&regex, text, 1, &theirs, 0) == 0, found);
        if (found &&
            (span.at != (size_t)theirs.rm_so || span.at + span.len != (size_t)theirs.rm_eo))
            fail_msg("%s in %s: %zu to %zu, glibc has %d to %d", pattern, text, span.at,
                     span.at + span.len, theirs.rm_so, theirs.rm_eo);
        regfree(&regex);
    }
    script_done(&script);
}

/* Each of these takes seconds to hours, or all memory, with a matcher that backtracks or that makes
 * a new state for every set of states. Here they are over before the test runner looks. */
static void hard_patterns_stay_cheap(void **state)
{
    static const char *const patterns[] = {
        "(a|b)*a(a|b){12}x", "(a*)*x",  "((((a+)+)+)+)+x",   "(a|a)*x",
        "(x+x+)+y",          "a.*b.*x", "(.*)(.*)(.*)(.*)x", "(a?){99}a{99}x",
    };
    AUTO_FREE char *text = alloc_zero(65537, 1);
    struct script script;

    script_init(&script, 5);
    for (size_t i = 0; i < 65536; i++)
        text[i] = "ab"[script_random(&script, 2)];
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        assert_string_equal(find(patterns[i], text, 0), "-");
    script_done(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_leftmost_and_longest),
        cmocka_unit_test(anchors_know_when_the_line_goes_on),
        cmocka_unit_test(mistakes_are_explained),
        cmocka_unit_test(limits_of_a_pattern),
        cmocka_unit_test(agrees_with_glibc),
        cmocka_unit_test(hard_patterns_stay_cheap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
