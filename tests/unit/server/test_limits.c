/* limit_data: which refusals tell programs what. */
#include "../base/support.h"

#include "base/json.h"
#include "server/call.h"

#include <errno.h>

static void assert_json(json_t *json, const char *expected)
{
    AUTO_JSON json_t *taken = json;
    AUTO_JSON json_t *meant = json_loads(expected, 0, NULL);

    assert_true(json_equal(taken, meant));
}

static void a_limit_of_ours_has_its_number(void **state)
{
    assert_json(limit_data("max-processes", 4096),
                "{\"reason\": \"max-processes\", \"limit\": 4096}");
}

static void what_the_system_has_run_out_of_has_a_name(void **state)
{
    assert_json(limit_data_of_errno(EMFILE),
                "{\"reason\": \"descriptors\", \"errno\": \"EMFILE\"}");
    assert_json(limit_data_of_errno(ENFILE),
                "{\"reason\": \"descriptors\", \"errno\": \"ENFILE\"}");
    assert_json(limit_data_of_errno(ENOSPC), "{\"reason\": \"disk-full\", \"errno\": \"ENOSPC\"}");
    assert_json(limit_data_of_errno(EDQUOT), "{\"reason\": \"disk-full\", \"errno\": \"EDQUOT\"}");
}

static void other_errors_are_no_limits(void **state)
{
    assert_null(limit_data_of_errno(0));
    assert_null(limit_data_of_errno(ENOENT));
    assert_null(limit_data_of_errno(EACCES));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_of_ours_has_its_number),
        cmocka_unit_test(what_the_system_has_run_out_of_has_a_name),
        cmocka_unit_test(other_errors_are_no_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
