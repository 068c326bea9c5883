/* options: what is taken, what is refused and how, and the texts that come from the tables. */
#include "../base/support.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/strv.h"
#include "cli/options.h"

#include <stdint.h>
#include <string.h>

/* What the rows of the first group set. */
struct place {
    enum { MODE_AUTO = 3, MODE_REQUIRE, MODE_DISABLED } mode;
    const char *name;
    const char *text;
};

struct seen {
    struct strv calls; /* of --path and --json: "name=value" or "name" */
    struct strv items;
    struct place place;
    unsigned flags;
    bool is_true;
    uint64_t count;
    uint64_t time_ns;
    uint64_t size;
};

static int set_path(const struct option *option, void *member, const char *value, struct err *err)
{
    strv_pushf(member, "%s%s%s", option->name, value ? "=" : "", value ? value : "");
    return value && str_eq(value, "bad") ? err_set(err, ERR_NOT_FOUND, "no such thing") : 0;
}

static const char *const mode_words[] = {"auto", "require", "disabled", NULL};

static const struct option place_options[] = {
    {.name = "mode",
     .value = "MODE",
     .words = mode_words,
     INTO_WORD(struct place, mode, MODE_AUTO),
     .help = "How."},
    {.name = "name",
     .value = "NAME",
     INTO_TEXT(struct place, name),
     .wrong = "the name is empty",
     .help = "Whose."},
    {.name = "text", .value = "TEXT", INTO_TEXT(struct place, text), .help = "What."},
    {.name = NULL},
};

static const struct option first_options[] = {
    {.name = "mode",
     .value = "MODE",
     .words = mode_words,
     INTO_WORD(struct place, mode, MODE_AUTO),
     .help = "How."},
    {.name = "path",
     .letter = 'p',
     .value = "PATH",
     .set = set_path,
     .help = "Where it is that something is to be found which takes more than one line to say."},
    {.name = NULL},
};

static const struct option second_options[] = {
    {.name = "json", .letter = 'j', .set = set_path, .help = "As JSON."},
    {.name = NULL},
};

/* The options whose calls are noted, as a command has them. */
static const struct option_group groups[] = {
    {"First", first_options},
    {"Second", second_options},
    {NULL, NULL},
};

static const struct option kind_options[] = {
    {.name = "item",
     .letter = 'i',
     .value = "ITEM",
     INTO_LIST(struct seen, items),
     .max = 3,
     .help = "One of them."},
    {.name = "one", INTO_FLAG(struct seen, flags, 1), .help = "A bit."},
    {.name = "four", INTO_FLAG(struct seen, flags, 4), .help = "Another bit."},
    {.name = "chosen", INTO_CHOICE(struct seen, place.mode, MODE_DISABLED), .help = "Disabled."},
    {.name = "true", INTO_TRUE(struct seen, is_true), .help = "So it is."},
    {.name = "count",
     .value = "N",
     INTO_COUNT(struct seen, count),
     .min = 2,
     .max = 10,
     .help = "How many."},
    {.name = "least", .value = "N", INTO_COUNT(struct seen, count), .min = 2, .help = "At least."},
    {.name = "time",
     .value = "TIME",
     INTO_DURATION(struct seen, time_ns),
     .min = 1,
     .wrong = "has to be longer than 0",
     .help = "How long."},
    {.name = "size",
     .value = "SIZE",
     INTO_SIZE(struct seen, size),
     .max = 2048,
     .wrong = "2K are enough",
     .help = "How large."},
    {.name = NULL},
};

static const struct option_group kind_groups[] = {
    {"Place", place_options, offsetof(struct seen, place)},
    {"Kinds", kind_options},
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

    *seen = (struct seen){.flags = 8};
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
    assert_parsed("--path x", "path=x", "");
    assert_parsed("--path=x", "path=x", "");
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

/* Parses a line with the rows of all kinds, which has to be right. */
static void take(const char *line, struct seen *ret)
{
    struct options_rest left;
    struct err err;

    if (parse(kind_groups, line, ret, &left, &err))
        fail_msg("\"%s\": %s", line, err.msg);
    assert_null(left.argv[0]);
}

static void each_kind_goes_into_its_member(void **state)
{
    struct seen seen;

    take("", &seen);
    assert_int_equal(seen.flags, 8);
    take("--four --one --one", &seen);
    assert_int_equal(seen.flags, 8 | 4 | 1);
    assert_false(seen.is_true);
    take("--true", &seen);
    assert_true(seen.is_true);
    take("--count 10 --time 1500ms --size 2K", &seen);
    assert_int_equal(seen.count, 10);
    assert_int_equal(seen.time_ns, 1500000000);
    assert_int_equal(seen.size, 2048);
    take("--count 2 --count 3 --least 5", &seen);
    assert_int_equal(seen.count, 5);
    take("-i a --item b -ic", &seen);
    assert_int_equal(seen.items.len, 3);
    assert_string_equal(seen.items.items[2], "c");
    strv_done(&seen.items);
}

static void a_group_may_be_about_a_struct_inside(void **state)
{
    struct seen seen;

    take("--mode auto --name x --text ''", &seen);
    assert_int_equal(seen.place.mode, MODE_AUTO);
    assert_string_equal(seen.place.name, "x");
    assert_string_equal(seen.place.text, "");
    take("--mode require", &seen);
    assert_int_equal(seen.place.mode, MODE_REQUIRE);
    assert_null(seen.place.name);
    take("--mode=disabled", &seen);
    assert_int_equal(seen.place.mode, MODE_DISABLED);
    take("--mode require --chosen", &seen);
    assert_int_equal(seen.place.mode, MODE_DISABLED);
}

static void what_is_out_of_range_changes_nothing(void **state)
{
    static const struct {
        const char *line;
        const char *message;
    } cases[] = {
        {"--count 1", "--count: has to be from 2 to 10"},
        {"--count 11", "--count: has to be from 2 to 10"},
        {"--least 1", "--least: has to be at least 2"},
        {"--time 0", "--time: has to be longer than 0"},
        {"--size 2049", "--size: 2K are enough"},
        {"--name ''", "--name: the name is empty"},
        {"-i a -i b -i c -i d", "-i: given more than 3 times"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct options_rest left;
        struct seen seen;
        struct err err;

        assert_int_equal(parse(kind_groups, cases[i].line, &seen, &left, &err), -1);
        assert_string_equal(err.msg, cases[i].message);
        assert_int_equal(seen.count + seen.time_ns + seen.size, 0);
        assert_null(seen.place.name);
        strv_done(&seen.items);
    }
}

static void what_is_no_number_is_told(void **state)
{
    static const char *const lines[] = {"--count x", "--count -1", "--time 5parsecs", "--size 1Q"};

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct options_rest left;
        struct seen seen;
        struct err err;

        assert_int_equal(parse(kind_groups, lines[i], &seen, &left, &err), -1);
        assert_int_equal(strncmp(err.msg, lines[i], strcspn(lines[i], " ")), 0);
    }
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
    options_print(groups, false, &text);
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

static void in_a_few_words(void **state)
{
    static const struct option options[] = {
        {.name = "mode", .value = "MODE", .help = "How: 1.5 or *.x; nothing else. More."},
        {.name = "path",
         .letter = 'p',
         .value = "PATH[:AND|ANOTHER]",
         .help = "Where.",
         .brief = "There"},
        {.name = "all",
         .help = "Everything that there is, and what there is not of it, until the end. x"},
        {.name = NULL},
    };
    const struct option_group brief[] = {{"First", options, 0}, {NULL, NULL, 0}};
    AUTO(buf_done) struct buf text;

    buf_init(&text, 4096);
    options_print(brief, true, &text);
    assert_string_equal(
        text.data,
        "\n"
        "First:\n"
        "  --mode MODE                 How\n"
        "  -p, --path PATH[:AND|ANOTHER]\n"
        "                              There\n"
        "  --all                       Everything that there is, and what there is not of\n"
        "                              it, until the end\n");
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
        cmocka_unit_test(each_kind_goes_into_its_member),
        cmocka_unit_test(a_group_may_be_about_a_struct_inside),
        cmocka_unit_test(what_is_out_of_range_changes_nothing),
        cmocka_unit_test(what_is_no_number_is_told),
        cmocka_unit_test(a_command_may_have_no_options),
        cmocka_unit_test(the_table_is_the_help),
        cmocka_unit_test(in_a_few_words),
        cmocka_unit_test(texts_are_wrapped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
