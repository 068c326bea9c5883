/* options: what is taken, what is refused and how, and the texts that come from the tables. */
#include "../base/support.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/strv.h"
#include "cli/options.h"

#include <string.h>

struct seen {
    struct strv calls; /* "name=value" or "name" */
};

static void note(void *data, const char *name, const char *value)
{
    struct seen *seen = data;

    strv_pushf(&seen->calls, "%s%s%s", name, value ? "=" : "", value ? value : "");
}

static int set_mode(void *data, const char *value, struct err *err)
{
    note(data, "mode", value);
    return 0;
}

static int set_path(void *data, const char *value, struct err *err)
{
    note(data, "path", value);
    return str_eq(value, "bad") ? err_set(err, ERR_NOT_FOUND, "no such thing") : 0;
}

static int set_json(void *data, const char *value, struct err *err)
{
    note(data, "json", value);
    return 0;
}

static const char *const mode_words[] = {"auto", "require", "disabled", NULL};

static const struct option first_options[] = {
    {.name = "mode", .value = "MODE", .words = mode_words, .set = set_mode, .help = "How."},
    {.name = "path",
     .letter = 'p',
     .value = "PATH",
     .set = set_path,
     .help = "Where it is that something is to be found which takes more than one line to say."},
    {.name = NULL},
};

static const struct option second_options[] = {
    {.name = "json", .letter = 'j', .set = set_json, .help = "As JSON."},
    {.name = NULL},
};

static const struct option_group groups[] = {
    {"First", first_options},
    {"Second", second_options},
    {NULL, NULL},
};

static const struct option_group no_groups[] = {{NULL, NULL}};

enum { WORDS_MAX = 12 };

/* Parses `line`, split at spaces; "''" stands for an empty word. */
static int parse(const struct option_group *table, const char *line, struct seen *seen,
                 struct options_rest *ret, struct err *err)
{
    static char text[256];
    static char *argv[WORDS_MAX];
    static char empty[] = "";
    size_t len = 0;

    *seen = (struct seen){{0}};
    strncat(memset(text, 0, sizeof text), line, sizeof text - 1);
    for (char *word = text; *word;) {
        size_t end = strcspn(word, " ");
        bool is_last = !word[end];

        word[end] = '\0';
        argv[len++] = str_eq(word, "''") ? empty : word;
        word += end + !is_last;
    }
    argv[len] = NULL;
    return options_parse(table, argv, seen, ret, err);
}

static void assert_parsed(const char *line, const char *calls, const char *rest)
{
    AUTO(buf_done) struct buf joined_calls;
    AUTO(buf_done) struct buf joined_rest;
    struct err err = ERR_UNTOUCHED;
    struct options_rest left;
    struct seen seen;

    buf_init(&joined_calls, 4096);
    buf_init(&joined_rest, 4096);
    if (parse(groups, line, &seen, &left, &err))
        fail_msg("\"%s\": %s", line, err.msg);
    assert_untouched(err);
    for (size_t i = 0; i < seen.calls.len; i++)
        buf_appendf(&joined_calls, "%s%s", i ? " " : "", seen.calls.items[i]);
    for (size_t i = 0; left.argv[i]; i++)
        buf_appendf(&joined_rest, "%s%s", i ? " " : "", left.argv[i]);
    assert_string_equal(joined_calls.data ? joined_calls.data : "", calls);
    assert_string_equal(joined_rest.data ? joined_rest.data : "", rest);
    assert_false(left.wants_help);
    strv_done(&seen.calls);
}

static void assert_refused(const char *line, const char *message)
{
    struct options_rest left;
    struct seen seen;
    struct err err;

    assert_int_equal(parse(groups, line, &seen, &left, &err), -1);
    assert_string_equal(err.msg, message);
    strv_done(&seen.calls);
}

static void every_spelling_is_taken(void **state)
{
    assert_parsed("", "", "");
    assert_parsed("--mode auto", "mode=auto", "");
    assert_parsed("--mode=auto", "mode=auto", "");
    assert_parsed("-p x", "path=x", "");
    assert_parsed("-px", "path=x", "");
    assert_parsed("--path=a=b", "path=a=b", "");
    assert_parsed("--path=", "path=", "");
    assert_parsed("--path ''", "path=", "");
    assert_parsed("--json -j", "json json", "");
    assert_parsed("--path x --path y -p z", "path=x path=y path=z", "");
}

static void a_value_may_look_like_an_option(void **state)
{
    assert_parsed("--path --json x", "path=--json", "x");
    assert_parsed("-p -- x", "path=--", "x");
    assert_parsed("--path=--json -p-j", "path=--json path=-j", "");
}

static void options_end_where_something_else_begins(void **state)
{
    assert_parsed("--json make --json -p", "json", "make --json -p");
    assert_parsed("--json -- --json", "json", "--json");
    assert_parsed("-- --", "", "--");
    assert_parsed("-", "", "-");
    assert_parsed("'' --json", "", " --json");
}

static void help_stops_everything(void **state)
{
    static const char *const lines[] = {"--help", "-h", "-j --help --nonsense", "-h make"};

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct options_rest left;
        struct seen seen;
        struct err err;

        assert_int_equal(parse(groups, lines[i], &seen, &left, &err), 0);
        assert_true(left.wants_help);
        strv_done(&seen.calls);
    }
    assert_parsed("make --help", "", "make --help");
}

static void wrong_ones_are_named_with_what_is_near(void **state)
{
    assert_refused("--mod auto", "there is no option --mod; did you mean --mode?");
    assert_refused("--jsno=1", "there is no option --jsno; did you mean --json?");
    assert_refused("--zzzzzz", "there is no option --zzzzzz");
    assert_refused("--hlep", "there is no option --hlep; did you mean --help?");
    assert_refused("-x", "there is no option -x");
    assert_refused("--=x", "there is no option --");
}

static void wrong_values_are_told_with_what_is_right(void **state)
{
    assert_refused("--mode", "--mode: needs a value: auto, require or disabled");
    assert_refused("-p", "-p: needs a value: PATH");
    assert_refused("--json=1", "--json: takes no value");
    assert_refused("-j1", "-j: takes no value");
    assert_refused("--mode requir", "--mode: \"requir\" is not one of auto, require or disabled; "
                                    "did you mean require?");
    assert_refused("--mode 17", "--mode: \"17\" is not one of auto, require or disabled");
    assert_refused("--mode ''", "--mode: \"\" is not one of auto, require or disabled");
    assert_refused("--path bad", "--path: no such thing");
}

static void a_command_may_have_no_options(void **state)
{
    struct options_rest left;
    struct seen seen;
    struct err err;

    assert_int_equal(parse(no_groups, "--json", &seen, &left, &err), -1);
    assert_string_equal(err.msg, "there is no option --json");
    assert_int_equal(parse(no_groups, "--help", &seen, &left, &err), 0);
    assert_true(left.wants_help);
    assert_int_equal(parse(no_groups, "x", &seen, &left, &err), 0);
    assert_string_equal(left.argv[0], "x");
}

static void the_table_is_the_help(void **state)
{
    AUTO(buf_done) struct buf text;

    buf_init(&text, 4096);
    options_print(groups, &text);
    assert_string_equal(
        text.data, "\n"
                   "First:\n"
                   "  --mode MODE\n"
                   "          How.\n"
                   "  -p, --path PATH\n"
                   "          Where it is that something is to be found which takes more than one\n"
                   "          line to say.\n"
                   "\n"
                   "Second:\n"
                   "  -j, --json\n"
                   "          As JSON.\n"
                   "\n"
                   "  -h, --help\n"
                   "          Shows this text and does nothing else.\n");
}

static void assert_wrapped(const char *from, unsigned indent, const char *to)
{
    AUTO(buf_done) struct buf text;

    buf_init(&text, 4096);
    options_print_text(from, indent, &text);
    assert_string_equal(text.data ? text.data : "", to);
}

static void texts_are_wrapped(void **state)
{
    assert_wrapped("", 0, "");
    assert_wrapped("one", 2, "  one\n");
    assert_wrapped("one\n", 2, "  one\n");
    assert_wrapped("one\n\ntwo\n", 2, "  one\n\n  two\n");
    assert_wrapped("  fixed  text that is longer than a line, and still not wrapped, as an example "
                   "has to be\nmore\n",
                   0,
                   "  fixed  text that is longer than a line, and still not wrapped, as an example "
                   "has to be\nmore\n");
    assert_wrapped("aaaa bbbb", 75,
                   "                                                               "
                   "            aaaa\n"
                   "                                                               "
                   "            bbbb\n");
    /* a word that fits nowhere stands alone */
    assert_wrapped(
        "a bbbbbbbb c", 76,
        "                                                                            a\n"
        "                                                                            "
        "bbbbbbbb\n"
        "                                                                            c\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spelling_is_taken),
        cmocka_unit_test(a_value_may_look_like_an_option),
        cmocka_unit_test(options_end_where_something_else_begins),
        cmocka_unit_test(help_stops_everything),
        cmocka_unit_test(wrong_ones_are_named_with_what_is_near),
        cmocka_unit_test(wrong_values_are_told_with_what_is_right),
        cmocka_unit_test(a_command_may_have_no_options),
        cmocka_unit_test(the_table_is_the_help),
        cmocka_unit_test(texts_are_wrapped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
