/* log: whole lines, byte for byte, with the clock stopped. JSON lines are also read back by
 * jansson, which is a judge of its own. */
#include "support.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int ends[2];
static char line[2 * LOG_LINE_MAX];

static int log_setup(void **state)
{
    unsetenv("JOURNAL_STREAM");
    clock_freeze(0, UINT64_C(1795170840123000000)); /* 2026-11-20T10:34:00.123Z */
    return socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends);
}

static int log_teardown(void **state)
{
    clock_release();
    close(ends[0]);
    close(ends[1]);
    return 0;
}

static void use(enum log_level level, enum log_form form)
{
    log_init(&(struct log_options){.fd = ends[1], .level = level, .form = form});
}

/* What one write brought, as text; empty when there was none. */
static const char *got(void)
{
    ssize_t len = recv(ends[0], line, sizeof line - 1, 0);

    line[len < 0 ? 0 : len] = '\0';
    return line;
}

static void text_line(void **state)
{
    use(LOG_LEVEL_INFO, LOG_FORM_TEXT);
    log_event(LOG_LEVEL_INFO, "session-started", log_text("id", "7"), log_int("pid", -4711),
              log_uint("bytes", UINT64_MAX), log_bool("tty", true), log_bool("net", false));
    assert_string_equal(got(), "2026-11-20T10:34:00.123Z info session-started id=7 pid=-4711 "
                               "bytes=18446744073709551615 tty=true net=false\n");
    log_event(LOG_LEVEL_ERROR, "no fields");
    assert_string_equal(got(), "2026-11-20T10:34:00.123Z error \"no fields\"\n");
    assert_string_equal(got(), "");
}

static void json_line(void **state)
{
    use(LOG_LEVEL_DEBUG, LOG_FORM_JSON);
    log_event(LOG_LEVEL_WARN, "odd", log_text("text", "a\"b\\c\n"), log_int("min", INT64_MIN),
              log_bool("yes", true), log_text("none", NULL));
    assert_string_equal(got(), "{\"time\":\"2026-11-20T10:34:00.123Z\",\"level\":\"warn\","
                               "\"event\":\"odd\",\"text\":\"a\\\"b\\\\c\\n\","
                               "\"min\":-9223372036854775808,\"yes\":true,\"none\":null}\n");
    log_event(LOG_LEVEL_DEBUG, "bare");
    assert_string_equal(got(), "{\"time\":\"2026-11-20T10:34:00.123Z\",\"level\":\"debug\","
                               "\"event\":\"bare\"}\n");
}

static void levels_below_the_chosen_one_are_silent(void **state)
{
    for (int chosen = LOG_LEVEL_ERROR; chosen <= LOG_LEVEL_DEBUG; chosen++) {
        use((enum log_level)chosen, LOG_FORM_TEXT);
        for (int level = LOG_LEVEL_ERROR; level <= LOG_LEVEL_DEBUG; level++) {
            log_event((enum log_level)level, "x");
            assert_int_equal(*got() != '\0', level <= chosen);
        }
    }
}

static void text_values_are_quoted_where_they_need_it(void **state)
{
    static const char *const cases[][2] = {
        {"plain/path-1.2:x,y", "plain/path-1.2:x,y"},
        {"caf\xc3\xa9", "caf\xc3\xa9"},
        {"", "\"\""},
        {"two words", "\"two words\""},
        {"a=b", "\"a=b\""},
        {"say \"hi\"", "\"say \\\"hi\\\"\""},
        {"back\\slash", "\"back\\\\slash\""},
        {"tab\tcr\rlf\n", "\"tab\\tcr\\rlf\\n\""},
        {"\x1b[31mred\x7f", "\"\\u001b[31mred\\u007f\""},
        {"c1\xc2\x9b"
         "31m",
         "\"c1\\u009b31m\""},
        {"bad\xff\xe2\x82", "\"bad\xef\xbf\xbd\xef\xbf\xbd\""},
    };

    use(LOG_LEVEL_INFO, LOG_FORM_TEXT);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[256];

        log_event(LOG_LEVEL_INFO, "x", log_text("v", cases[i][0]));
        snprintf(expected, sizeof expected, "2026-11-20T10:34:00.123Z info x v=%s\n", cases[i][1]);
        assert_string_equal(got(), expected);
    }
}

static json_t *got_json(void)
{
    json_error_t where;
    json_t *json = json_loads(got(), JSON_REJECT_DUPLICATES, &where);

    if (!json)
        fail_msg("%s in %s", where.text, line);
    return json;
}

static void every_byte_gives_well_formed_json(void **state)
{
    use(LOG_LEVEL_INFO, LOG_FORM_JSON);
    for (int byte = 1; byte < 256; byte++) {
        const char text[] = {'<', (char)byte, '>', '\0'};
        json_t *json;

        log_event(LOG_LEVEL_INFO, "x", log_text("v", text));
        json = got_json();
        assert_string_equal(json_string_value(json_object_get(json, "v")),
                            byte < 0x80 ? text : "<\xef\xbf\xbd>");
        json_decref(json);
    }
}

static void long_value_is_cut_between_characters(void **state)
{
    char text[LOG_VALUE_MAX + 10];
    const char *value;
    json_t *json;

    memset(text, 'a', sizeof text);
    memcpy(text + LOG_VALUE_MAX - 1, "\xc3\xa4", 2);
    text[sizeof text - 1] = '\0';
    use(LOG_LEVEL_INFO, LOG_FORM_JSON);
    log_event(LOG_LEVEL_INFO, "x", log_text("v", text), log_int("after", 1));
    json = got_json();
    value = json_string_value(json_object_get(json, "v"));
    assert_int_equal(strlen(value), LOG_VALUE_MAX - 1);
    assert_int_equal(json_integer_value(json_object_get(json, "after")), 1);
    assert_true(json_is_true(json_object_get(json, "cut")));
    json_decref(json);

    text[LOG_VALUE_MAX - 1] = '\0';
    log_event(LOG_LEVEL_INFO, "x", log_text("v", text));
    json = got_json();
    assert_null(json_object_get(json, "cut"));
    json_decref(json);
}

static void fields_that_do_not_fit_are_left_out_whole(void **state)
{
    char wide[LOG_VALUE_MAX + 1];
    json_t *json;

    memset(wide, 'w', sizeof wide - 1);
    wide[sizeof wide - 1] = '\0';
    use(LOG_LEVEL_INFO, LOG_FORM_JSON);
    log_event(LOG_LEVEL_INFO, "x", log_text("a", wide), log_text("b", wide), log_text("c", wide),
              log_text("d", wide), log_int("small", 1));
    json = got_json();
    assert_true(strlen(line) <= LOG_LINE_MAX);
    assert_int_equal(strlen(json_string_value(json_object_get(json, "c"))), LOG_VALUE_MAX);
    assert_null(json_object_get(json, "d"));
    assert_int_equal(json_integer_value(json_object_get(json, "small")), 1);
    assert_true(json_is_true(json_object_get(json, "cut")));
    json_decref(json);

    use(LOG_LEVEL_INFO, LOG_FORM_TEXT);
    log_event(LOG_LEVEL_INFO, "x", log_text("a", wide), log_text("b", wide), log_text("c", wide),
              log_text("d", wide), log_int("small", 1));
    assert_true(strlen(got()) <= LOG_LINE_MAX);
    assert_null(strstr(line, " d="));
    assert_contains(line, " small=1 cut=true\n");
}

/* Every length around the limit: the line stays within it and is never torn. */
static void no_length_tears_the_line(void **state)
{
    static char value[LOG_VALUE_MAX + 1];

    use(LOG_LEVEL_INFO, LOG_FORM_JSON);
    for (size_t len = 0; len <= LOG_VALUE_MAX; len++) {
        json_t *json;

        memset(value, '\n', len); /* two bytes each when escaped */
        value[len] = '\0';
        log_event(LOG_LEVEL_INFO, "x", log_text("a", value), log_text("b", value));
        json = got_json();
        assert_true(strlen(line) <= LOG_LINE_MAX);
        assert_string_equal(json_string_value(json_object_get(json, "a")), value);
        assert_int_equal(json_object_get(json, "b") != NULL, json_object_get(json, "cut") == NULL);
        json_decref(json);
    }
}

/* JOURNAL_STREAM as systemd sets it for `fd`; `shift` makes the inode wrong. */
static void set_journal_stream(int fd, unsigned shift)
{
    char text[64];
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    snprintf(text, sizeof text, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino + shift);
    assert_int_equal(setenv("JOURNAL_STREAM", text, 1), 0);
}

static void journal_gets_priorities(void **state)
{
    static const char *const expected[] = {"<3>x k=v\n", "<4>x k=v\n", "<6>x k=v\n", "<7>x k=v\n"};

    set_journal_stream(ends[1], 0);
    use(LOG_LEVEL_DEBUG, LOG_FORM_TEXT);
    for (int level = LOG_LEVEL_ERROR; level <= LOG_LEVEL_DEBUG; level++) {
        log_event((enum log_level)level, "x", log_text("k", "v"));
        assert_string_equal(got(), expected[level]);
    }
}

static void only_the_journals_own_socket_counts(void **state)
{
    set_journal_stream(ends[1], 1);
    use(LOG_LEVEL_INFO, LOG_FORM_TEXT);
    log_event(LOG_LEVEL_INFO, "x");
    assert_int_equal(*got(), '2');
    setenv("JOURNAL_STREAM", "nonsense", 1);
    use(LOG_LEVEL_INFO, LOG_FORM_TEXT);
    log_event(LOG_LEVEL_INFO, "x");
    assert_int_equal(*got(), '2');
    set_journal_stream(ends[1], 0);
    use(LOG_LEVEL_INFO, LOG_FORM_JSON);
    log_event(LOG_LEVEL_INFO, "x");
    assert_int_equal(*got(), '{');
}

static void errno_is_kept_even_without_a_reader(void **state)
{
    log_init(&(struct log_options){.fd = -1, .level = LOG_LEVEL_INFO, .form = LOG_FORM_TEXT});
    errno = ENOTTY;
    log_event(LOG_LEVEL_INFO, "x", log_text("error", strerror(errno)));
    assert_int_equal(errno, ENOTTY);
}

#define log_test(function) cmocka_unit_test_setup_teardown(function, log_setup, log_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        log_test(text_line),
        log_test(json_line),
        log_test(levels_below_the_chosen_one_are_silent),
        log_test(text_values_are_quoted_where_they_need_it),
        log_test(every_byte_gives_well_formed_json),
        log_test(long_value_is_cut_between_characters),
        log_test(fields_that_do_not_fit_are_left_out_whole),
        log_test(no_length_tears_the_line),
        log_test(journal_gets_priorities),
        log_test(only_the_journals_own_socket_counts),
        log_test(errno_is_kept_even_without_a_reader),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
