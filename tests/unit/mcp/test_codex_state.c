/* codex_state: what Codex says of its sandbox (tests/cases/codex_state).
 *
 *     meta       params._meta
 *     profile    its type, when it is used; cwd: the directory
 *     error      instead: how the message goes on */
#include "../base/cases.h"

#include "base/auto.h"
#include "base/str.h"
#include "mcp/codex_state.h"

static void state_case(void **state)
{
    static const char *const keys[] = {"why", "meta", "profile", "cwd", "error", NULL};
    const json_t *json = ((const struct test_case *)*state)->json;
    const char *error = case_string_or(json, "error", NULL);
    AUTO(mcp_codex_state_done) struct mcp_codex_state read;
    const char *type;
    const char *cwd = case_string_or(json, "cwd", NULL);
    struct err err = {0};
    int status = mcp_codex_state_read(json_object_get(json, "meta"), &read, &err);

    case_check_keys(json, keys);
    assert_int_equal(status, error ? -1 : 0);
    if (error)
        assert_contains(err.msg, error);
    type = json_string_value(json_object_get(read.profile, "type"));
    assert_string_equal(type ? type : "", case_string_or(json, "profile", ""));
    assert_string_equal(read.cwd ? read.cwd : "", cwd ? cwd : "");
}

static void without_any_meta(void **state)
{
    struct mcp_codex_state read;
    struct err err;

    assert_int_equal(mcp_codex_state_read(NULL, &read, &err), 0);
    assert_null(read.profile);
    assert_null(read.cwd);
}

int main(void)
{
    const struct CMUnitTest more[] = {cmocka_unit_test(without_any_meta)};

    return cases_run("codex_state", state_case, more, 1);
}
