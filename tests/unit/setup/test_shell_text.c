/* shell_text: words that a shell reads as they were, and what Claude Code has at the end of a command. That
 * what is quoted comes out of real shells is in tests/e2e/test_clients.py. */
#include "../base/support.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/strv.h"
#include "setup/shell_text.h"

#include <stdlib.h>

static void check_quoted(const char *text, const char *wanted)
{
    AUTO(buf_done) struct buf got = {.max = 4096};

    shell_quote(text, &got);
    assert_string_equal(got.data, wanted);
}

static void words_are_quoted(void **state)
{
    check_quoted("/usr/bin/cordon", "/usr/bin/cordon");
    check_quoted("", "''");
    check_quoted("a b", "'a b'");
    check_quoted("it's", "'it'\\''s'");
    check_quoted("'", "''\\'''");
    check_quoted("$(x) `y` \\ \n \"", "'$(x) `y` \\ \n \"'");
    check_quoted("~", "'~'");
    check_quoted("a=b", "'a=b'");
    check_quoted("{a,b}", "'{a,b}'");
    check_quoted("\xc3\xa4\xff", "'\xc3\xa4\xff'");
}

static void what_begins_like_an_option_is_none(void **state)
{
    AUTO(strv_done) struct strv plain = {0}, option = {0}, plus = {0};

    shell_text_words("ls", &plain);
    assert_int_equal(plain.len, 2);
    shell_text_words("-x", &option);
    assert_string_equal(option.items[1], "--");
    assert_string_equal(option.items[2], "-x");
    shell_text_words("+x", &plus);
    assert_int_equal(plus.len, 3);
}

static void check_file(const char *text, const char *tmp, const char *wanted)
{
    AUTO_FREE char *got = claude_cwd_file(text, tmp);

    assert_string_equal(got ? got : "-", wanted);
}

static void the_file_of_the_directory(void **state)
{
    check_file("eval 'x' < /dev/null && pwd -P >| /tmp/claude-181f-cwd", "/tmp",
               "/tmp/claude-181f-cwd");
    check_file("eval 'x' && pwd -P >| /t/claude-0-cwd", "/t", "/t/claude-0-cwd");
    check_file("eval ' && pwd -P >| /tmp/claude-1-cwd' && pwd -P >| /tmp/claude-2-cwd", "/tmp",
               "/tmp/claude-2-cwd");
    check_file("eval 'x && pwd -P >| /tmp/claude-181f-cwd'", "/tmp", "-");
    check_file("x && pwd -P >| /tmp/claude-181f-cwd; rm x", "/tmp", "-");
    check_file("x && pwd -P >| /tmp/claude-181f-cwd\n", "/tmp", "-");
    check_file("x && pwd -P >| /tmp/claude-../../home/u/.bashrc-cwd", "/tmp", "-");
    check_file("x && pwd -P >| /tmp/claude--cwd", "/tmp", "-");
    check_file("x && pwd -P >| /tmp/claude-XY-cwd", "/tmp", "-");
    check_file("x && pwd -P >| /tmp/claude-0123456789012345678901234567890123-cwd", "/tmp", "-");
    check_file("x && pwd -P >| /home/claude-1-cwd", "/tmp", "-");
    check_file("x && pwd -P >| /tmpx/claude-1-cwd", "/tmp", "-");
    check_file("", "/tmp", "-");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_quoted),
        cmocka_unit_test(what_begins_like_an_option_is_none),
        cmocka_unit_test(the_file_of_the_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
