/* roots: which of a client's roots are taken (tests/cases/mcp_roots), on made-up hosts; the workspace is /w, the home directory
 * /home/u, and ~/.config/cordon is Cordon's.
 *
 *     mode     "ignore", "narrow", "trust"; "host": as in fake_host.h; "home": null: not known
 *     uris     of roots/list; roots: those that are taken; refused: how many are told */
#include "../base/cases.h"
#include "../policy/fake_host.h"

#include "base/auto.h"
#include "base/str.h"
#include "mcp/roots.h"

static enum config_mcp_roots mode_of(const json_t *json)
{
    const char *word = case_string(json, "mode");

    return str_eq(word, "trust")    ? CONFIG_MCP_ROOTS_TRUST
           : str_eq(word, "narrow") ? CONFIG_MCP_ROOTS_NARROW
                                    : CONFIG_MCP_ROOTS_IGNORE;
}

static json_t *result_of(const json_t *uris)
{
    json_t *roots = json_array();
    size_t i;
    json_t *uri;

    json_array_foreach((json_t *)uris, i, uri)
        json_array_append_new(roots, json_pack("{s:O}", "uri", uri));
    return json_pack("{s:o}", "roots", roots);
}

static void roots_case(void **state)
{
    static const char *const keys[] = {"why",   "mode",    "host", "uris",
                                       "roots", "refused", "home", NULL};
    const json_t *json = ((const struct test_case *)*state)->json;
    struct fake_host host = fake_host_make(json_object_get(json, "host"));
    static char *own[] = {(char *)"/home/u/.config/cordon", NULL};
    const struct mcp_roots_rule rule = {
        .roots = mode_of(json),
        .workspace = "/w",
        .home = json_object_get(json, "home") ? NULL : "/home/u",
        .own_paths = own,
        .view = &host.view,
    };
    AUTO_JSON json_t *result = result_of(json_object_get(json, "uris"));
    AUTO_FREE char **wanted = case_strings(json, "roots");
    AUTO(strv_done) struct strv roots = {0};
    AUTO(strv_done) struct strv refused = {0};

    case_check_keys(json, keys);
    mcp_roots_judge(result, &rule, &roots, &refused);
    for (size_t i = 0; wanted[i] || i < roots.len; i++) {
        assert_true(wanted[i] && i < roots.len);
        assert_string_equal(roots.items[i], wanted[i]);
    }
    assert_int_equal(refused.len, json_integer_value(json_object_get(json, "refused")));
    for (size_t i = 0; i < refused.len; i++)
        assert_contains(refused.items[i], " is not used: ");
}

static void more_than_there_may_be_are_left_out(void **state)
{
    AUTO_JSON json_t *paths = json_object();
    AUTO_JSON json_t *uris = json_array();
    AUTO_JSON json_t *result = NULL;
    struct fake_host host;
    struct mcp_roots_rule rule = {.roots = CONFIG_MCP_ROOTS_TRUST, .workspace = "/w"};
    AUTO(strv_done) struct strv roots = {0};
    AUTO(strv_done) struct strv refused = {0};

    for (int i = 0; i < MCP_ROOTS_MAX + 1; i++) {
        json_array_append_new(uris, json_sprintf("file:///srv/%d", i));
        json_object_set_new(paths, json_string_value(json_array_get(uris, (size_t)i)) + 7,
                            json_string("dir"));
    }
    host = fake_host_make(paths);
    rule.view = &host.view;
    result = result_of(uris);
    mcp_roots_judge(result, &rule, &roots, &refused);
    assert_int_equal(roots.len, MCP_ROOTS_MAX);
    mcp_roots_judge(NULL, &rule, &roots, &refused);
    assert_int_equal(roots.len, MCP_ROOTS_MAX);
}

int main(void)
{
    const struct CMUnitTest more[] = {cmocka_unit_test(more_than_there_may_be_are_left_out)};

    return cases_run("mcp_roots", roots_case, more, 1);
}
