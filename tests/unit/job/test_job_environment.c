/* job_env: what a job finds in its environment (tests/cases/job/environment).
 *
 *     base, chosen   arrays of strings
 *     thread_id
 *     env            all of the result, in order */
#include "output_cases.h"

#include "base/auto.h"
#include "base/json.h"
#include "base/strv.h"
#include "job/job_environment.h"

static void environment_case(void **state)
{
    static const char *const keys[] = {"why", "base", "chosen", "thread_id", "env", NULL};
    const json_t *json = ((const struct test_case *)*state)->json;
    AUTO_FREE char **base = case_strings(json, "base");
    AUTO_FREE char **chosen = case_strings(json, "chosen");
    AUTO(strv_done) struct strv env = {0};
    AUTO_JSON json_t *got = json_array();
    struct job_env_request request = {
        .base = base,
        .chosen = (const char *const *)chosen,
        .thread_id = case_string_or(json, "thread_id", NULL),
    };

    case_check_keys(json, keys);
    job_env_build(&request, &env);
    for (size_t i = 0; i < env.len; i++)
        json_array_append_new(got, json_string(env.items[i]));
    assert_json_equal(got, json_object_get(json, "env"));
}

static void nothing_given_is_nothing_kept(void **state)
{
    AUTO(strv_done) struct strv env = {0};

    job_env_build(&(struct job_env_request){0}, &env);
    assert_int_equal(env.len, 10);
}

int main(void)
{
    const struct CMUnitTest more[] = {cmocka_unit_test(nothing_given_is_nothing_kept)};

    return cases_run("job/environment", environment_case, more, sizeof more / sizeof *more);
}
