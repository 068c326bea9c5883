/* shell_words: scripts that are plain, with their commands, and scripts that are not
 * (tests/cases/shell_words). The same against real shells: tests/e2e/test_shell_words.py.
 *
 *     plain     {SCRIPT: [[WORD...]...]}; of a list that begins with a number, only so many words
 *               are exact, else all are
 *     opaque    {SCRIPT: [OFFSET, part of the reason]} */
#include "../base/cases.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "rules/shell/shell_words.h"

#include <string.h>

static json_t *command_to_json(const struct shell_command *command)
{
    json_t *words = json_array();

    if (command->exact < command->words.len)
        json_array_append_new(words, json_integer((json_int_t)command->exact));
    for (size_t i = 0; i < command->words.len; i++)
        json_array_append_new(words, json_string(command->words.items[i]));
    return words;
}

static void check_plain(const char *text, const json_t *wanted)
{
    AUTO(shell_script_done) struct shell_script script = {0};
    AUTO_JSON json_t *got = json_array();

    shell_script_parse(text, strlen(text), &script);
    if (script.opaque)
        fail_msg("%s: opaque at %zu: %s", text, script.offset, script.opaque);
    for (size_t i = 0; i < script.commands.len; i++)
        json_array_append_new(got, command_to_json(&script.commands.items[i]));
    assert_json_equal(got, wanted);
}

static void check_opaque(const char *text, const json_t *wanted)
{
    AUTO(shell_script_done) struct shell_script script = {0};

    shell_script_parse(text, strlen(text), &script);
    if (!script.opaque)
        fail_msg("%s: is plain", text);
    assert_int_equal(script.commands.len, 0);
    assert_contains(script.opaque, json_string_value(json_array_get(wanted, 1)));
    if (script.offset != (size_t)json_integer_value(json_array_get(wanted, 0)))
        fail_msg("%s: opaque at %zu", text, script.offset);
}

static void words_case(void **state)
{
    static const char *const keys[] = {"why", "plain", "opaque", NULL};
    const struct test_case *test = *state;
    const char *script;
    json_t *wanted;

    case_check_keys(test->json, keys);
    json_object_foreach(json_object_get(test->json, "plain"), script, wanted)
        check_plain(script, wanted);
    json_object_foreach(json_object_get(test->json, "opaque"), script, wanted)
        check_opaque(script, wanted);
}

static void a_nul_byte_is_opaque(void **state)
{
    struct shell_script script;

    shell_script_parse("ls\0rm", 5, &script);
    assert_string_equal(script.opaque, "a NUL byte");
    assert_int_equal(script.offset, 2);
    shell_script_done(&script);
    shell_script_parse("ls 'a\0b'", 8, &script);
    assert_non_null(script.opaque);
    shell_script_done(&script);
}

/* `unit` over and over, `count` times. */
static void check_repeated(const char *unit, size_t count, const char *reason)
{
    size_t len = strlen(unit) * count;
    AUTO_FREE char *text = alloc_zero(len + 1, 1);
    AUTO(shell_script_done) struct shell_script script = {0};

    for (size_t i = 0; i < count; i++)
        memcpy(text + i * strlen(unit), unit, strlen(unit));
    shell_script_parse(text, len, &script);
    if (reason)
        assert_string_equal(script.opaque, reason);
    else
        assert_null(script.opaque);
}

static void limits(void **state)
{
    check_repeated("ls\n", SHELL_COMMANDS_MAX, NULL);
    check_repeated("ls\n", SHELL_COMMANDS_MAX + 1, "too many commands");
    check_repeated("a", SHELL_SCRIPT_MAX, NULL);
    check_repeated("a", SHELL_SCRIPT_MAX + 1, "a script that is too long");
    check_repeated("env ", SHELL_DEPTH_MAX, NULL);
    check_repeated("env ", SHELL_DEPTH_MAX + 2, "programs that run programs, nested too deep");
    check_repeated("xargs env ", 10000, "programs that run programs, nested too deep");
}

int main(void)
{
    const struct CMUnitTest more[] = {
        cmocka_unit_test(a_nul_byte_is_opaque),
        cmocka_unit_test(limits),
    };

    return cases_run("shell_words", words_case, more, sizeof more / sizeof *more);
}
