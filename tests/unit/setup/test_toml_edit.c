/* toml_edit: what becomes of a text when the table [mcp_servers.cordon] is put there, byte by byte
 * (tests/cases/toml_edit):
 *
 *     before   the text, as a list of what its line feeds separate
 *     after    the text then; putting it there once more changes nothing
 *     without  what is left when it is removed; missing: `before`
 *     error    in place of the two: what is said */
#include "../base/cases.h"

#include "base/auto.h"
#include "base/buf.h"
#include "policy/config/toml.h"
#include "setup/toml_edit.h"

#include <string.h>

static const char *const keys[] = {"mcp_servers", "cordon", NULL};
static bool is_ours(const struct toml_node *table)
{
    const struct toml_node *command = toml_find(table, "command");

    return command && command->kind == TOML_STRING && command->string[0] == '/';
}

static const struct toml_block block = {
    .mark = "# ours",
    .table = "mcp_servers.cordon",
    .keys = keys,
    .is_ours = is_ours,
    .body = "command = \"/c\"\nargs = [\"mcp\"]\n",
};

static void edit_case(void **state)
{
    static const char *const known[] = {"why", "before", "after", "without", "error", NULL};
    const json_t *json = ((struct test_case *)*state)->json;
    AUTO(buf_done) struct buf before = {.max = 65536}, after = {.max = 65536};
    AUTO(buf_done) struct buf again = {.max = 65536}, without = {.max = 65536};
    struct err err;

    case_check_keys(json, known);
    case_lines(json, "before", &before);
    if (json_object_get(json, "error")) {
        assert_int_equal(toml_edit_put(before.data, before.len, &block, &after, &err), -1);
        assert_contains(err.msg, case_string(json, "error"));
        return;
    }
    if (toml_edit_put(before.data, before.len, &block, &after, &err))
        fail_msg("%s", err.msg);
    assert_lines_equal(&after, json, "after");
    if (toml_edit_put(after.data, after.len, &block, &again, &err))
        fail_msg("%s", err.msg);
    assert_string_equal(again.data, after.data);
    if (toml_edit_remove(after.data, after.len, &block, &without, &err))
        fail_msg("%s", err.msg);
    assert_lines_equal(&without, json, json_object_get(json, "without") ? "without" : "before");
}

static void what_is_not_there_is_not_removed(void **state)
{
    static const char ours_not[] = "[mcp_servers.cordon]\ncommand = \"x\"\n";
    static const char other[] = "a = 1\n# ours\n";
    AUTO(buf_done) struct buf got = {.max = 4096};
    struct err err;

    assert_int_equal(toml_edit_remove(other, strlen(other), &block, &got, &err), 0);
    assert_string_equal(got.data, other);
    assert_int_equal(toml_edit_remove(ours_not, strlen(ours_not), &block, &got, &err), -1);
    assert_contains(err.msg, "was not written by Cordon");
}

int main(void)
{
    const struct CMUnitTest more[] = {
        cmocka_unit_test(what_is_not_there_is_not_removed),
    };

    return cases_run("toml_edit", edit_case, more, sizeof more / sizeof *more);
}
