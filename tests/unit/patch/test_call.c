/* Command lines that are patches, and those that are not (tests/cases/patch_call):
 *
 *     argv       the command line
 *     kind       "none", "patch", "bare"
 *     text       of a patch
 *     directory  of a patch; may be missing
 *     paths      of a patch that is applied in /w/d; may be missing */
#include "../base/cases.h"

#include "base/auto.h"
#include "base/str.h"
#include "base/strv.h"
#include "patch/call.h"

#include <string.h>

static void check_paths(const struct patch_call *call, const json_t *json)
{
    AUTO_FREE char **wanted = case_strings(json, "paths");
    AUTO(strv_done) struct strv paths = {0};
    size_t len = 0;

    patch_call_paths(call, "/w/d", &paths);
    for (; wanted[len]; len++)
        assert_string_equal(strv_view(&paths)[len], wanted[len]);
    assert_int_equal(paths.len, len);
}

static void call_case(void **state)
{
    static const char *const known[] = {"why", "argv", "kind", "text", "directory", "paths", NULL};
    static const char *const kinds[] = {
        [PATCH_CALL_NONE] = "none", [PATCH_CALL_PATCH] = "patch", [PATCH_CALL_BARE] = "bare"};
    const json_t *json = ((struct test_case *)*state)->json;
    AUTO_FREE char **argv = case_strings(json, "argv");
    AUTO(patch_call_done) struct patch_call call;

    case_check_keys(json, known);
    patch_call_read(argv, &call);
    assert_string_equal(kinds[call.kind], case_string(json, "kind"));
    if (call.kind != PATCH_CALL_PATCH) {
        assert_null(call.text);
        assert_null(call.dir);
        return;
    }
    assert_string_equal(call.text, case_string(json, "text"));
    assert_int_equal(call.text_len, strlen(call.text));
    assert_string_equal(call.dir ? call.dir : "(none)",
                        case_string_or(json, "directory", "(none)"));
    if (json_object_get(json, "paths"))
        check_paths(&call, json);
}

int main(void)
{
    return cases_run("patch_call", call_case, NULL, 0);
}
