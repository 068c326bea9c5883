/* command_view and command_class: what an argv runs, whether that is dangerous, and whether it is
 * known to be safe (tests/cases/command_class).
 *
 *     programs    {NAME: [FOUND, REAL]}; every other name is not found
 *     commands    a list of {argv}, or {script} for `bash -lc SCRIPT`, with any of
 *                 commands, inside: lists of argvs; inside_has: an argv that is one of them;
 *                 danger: none, forced-rm, other; safe; opaque: part of the reason, or null */
#include "../base/cases.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/strv.h"
#include "rules/shell/command_class.h"

#include <string.h>

struct case_finder {
    struct program_finder finder;
    const json_t *programs;
};

static bool case_find(const struct program_finder *finder, const char *name, char **ret_found,
                      char **ret_real)
{
    const struct case_finder *self = (const struct case_finder *)finder;
    const json_t *paths = json_object_get(self->programs, name);

    if (!paths)
        return false;
    *ret_found = alloc_str(json_string_value(json_array_get(paths, 0)));
    *ret_real = alloc_str(json_string_value(json_array_get(paths, 1)));
    return true;
}

static json_t *commands_to_json(const struct shell_commands *commands)
{
    json_t *list = json_array();

    for (size_t i = 0; i < commands->len; i++) {
        json_t *words = json_array();

        for (size_t word = 0; word < commands->items[i].words.len; word++)
            json_array_append_new(words, json_string(commands->items[i].words.items[word]));
        json_array_append_new(list, words);
    }
    return list;
}

static void check_commands(const json_t *json, const char *key,
                           const struct shell_commands *commands)
{
    AUTO_JSON json_t *got = commands_to_json(commands);

    if (json_object_get(json, key))
        assert_json_equal(got, json_object_get(json, key));
}

static void check_inside_has(const json_t *json, const struct command_view *view)
{
    AUTO_JSON json_t *got = commands_to_json(&view->inside);
    const json_t *wanted = json_object_get(json, "inside_has");
    bool found = wanted == NULL;

    for (size_t i = 0; i < json_array_size(got); i++)
        found = found || json_equal(json_array_get(got, i), wanted);
    if (!found)
        assert_json_equal(got, wanted);
}

static void check_opaque(const json_t *json, const struct command_view *view)
{
    const json_t *opaque = json_object_get(json, "opaque");

    if (json_is_null(opaque))
        assert_null(view->opaque);
    else if (opaque)
        assert_contains(view->opaque ? view->opaque : "plain", json_string_value(opaque));
}

static void check_one(const json_t *json, const struct case_finder *finder)
{
    static const char *const keys[] = {"argv",   "script", "commands", "inside", "inside_has",
                                       "danger", "safe",   "opaque",   NULL};
    static const char *const dangers[] = {"none", "forced-rm", "other"};
    const char *script = case_string_or(json, "script", NULL);
    AUTO_FREE char **words = case_strings(json, "argv");
    AUTO(strv_done) struct strv argv = {0};
    AUTO(command_view_done) struct command_view view = {0};

    case_check_keys(json, keys);
    if (script) {
        strv_push(&argv, "bash");
        strv_push(&argv, "-lc");
        strv_push(&argv, script);
    }
    strv_push_all(&argv, words);
    print_message("# %.*s\n", (int)strcspn(script ? script : argv.items[0], "\n"),
                  script ? script : argv.items[0]);
    command_view_make(strv_view(&argv), &view);
    check_commands(json, "commands", &view.commands);
    check_commands(json, "inside", &view.inside);
    check_inside_has(json, &view);
    check_opaque(json, &view);
    assert_string_equal(dangers[command_view_danger(&view)],
                        case_string_or(json, "danger", "none"));
    assert_int_equal(command_view_is_safe(&view, &finder->finder),
                     json_is_true(json_object_get(json, "safe")));
}

static void class_case(void **state)
{
    static const char *const keys[] = {"why", "programs", "commands", NULL};
    const json_t *json = ((const struct test_case *)*state)->json;
    const struct case_finder finder = {.finder.find = case_find,
                                       .programs = json_object_get(json, "programs")};
    const json_t *command;
    size_t i;

    case_check_keys(json, keys);
    json_array_foreach(json_object_get(json, "commands"), i, command) check_one(command, &finder);
}

/* Very many of everything: bounded, and dangerous when it is too deep to be looked through. */
static void very_much_of_everything(void **state)
{
    static const struct {
        const char *unit;
        enum command_danger danger;
    } texts[] = {{"$(", DANGER_OTHER},  {"env ", DANGER_OTHER}, {"a;", DANGER_NONE},
                 {"<<a ", DANGER_NONE}, {"`", DANGER_NONE},     {"\"", DANGER_NONE}};
    AUTO_FREE char *text = alloc_zero(200001, 1);
    char shell[] = "sh", option[] = "-c";
    char *const argv[] = {shell, option, text, NULL};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        size_t len = strlen(texts[i].unit);
        struct command_view view;

        for (size_t at = 0; at + len <= 200000; at += len)
            memcpy(text + at, texts[i].unit, len);
        command_view_make(argv, &view);
        assert_int_equal(command_view_danger(&view), texts[i].danger);
        assert_non_null(view.opaque);
        command_view_done(&view);
    }
}

static void an_empty_argv_runs_nothing(void **state)
{
    char *const argv[] = {NULL};
    struct command_view view;

    command_view_make(argv, &view);
    assert_int_equal(view.commands.len, 0);
    assert_int_equal(command_view_danger(&view), DANGER_NONE);
    command_view_done(&view);
}

static void system_programs(void **state)
{
    assert_true(path_is_system_program("/bin/ls"));
    assert_true(path_is_system_program("/usr/sbin/ls"));
    assert_false(path_is_system_program("/usr/bin"));
    assert_false(path_is_system_program("/usr/bin/"));
    assert_false(path_is_system_program("/usr/bin/x/ls"));
    assert_false(path_is_system_program("/usr/local/bin/ls"));
    assert_false(path_is_system_program("/home/x/bin/ls"));
    assert_false(path_is_system_program("ls"));
}

int main(void)
{
    const struct CMUnitTest more[] = {
        cmocka_unit_test(very_much_of_everything),
        cmocka_unit_test(an_empty_argv_runs_nothing),
        cmocka_unit_test(system_programs),
    };

    return cases_run("command_class", class_case, more, sizeof more / sizeof *more);
}
