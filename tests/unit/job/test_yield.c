/* yield: how long calls wait (tests/cases/job/yield).
 *
 *     call       exec, write or poll
 *     asked      milliseconds; absent: nothing was asked for
 *     poll_max   configured maximum
 *     ms         effective; note: what the model is told; absent: nothing */
#include "output_cases.h"

#include "base/auto.h"
#include "base/str.h"
#include "job/model_text.h"

static enum yield_call call_of(const json_t *json)
{
    const char *word = case_string(json, "call");

    if (str_eq(word, "exec"))
        return YIELD_EXEC;
    if (str_eq(word, "write"))
        return YIELD_WRITE;
    assert_string_equal(word, "poll");
    return YIELD_POLL;
}

static void yield_case(void **state)
{
    static const char *const keys[] = {"why", "call", "asked", "poll_max", "ms", "note", NULL};
    const json_t *json = ((const struct test_case *)*state)->json;
    const uint64_t asked = case_number(json, "asked", 0);
    const uint64_t *asked_ms = json_object_get(json, "asked") ? &asked : NULL;
    struct yield yield = yield_clamp(call_of(json), asked_ms, case_number(json, "poll_max", 0));
    AUTO_FREE char *note = model_note_yield(&yield, asked_ms);
    const char *wanted = case_string_or(json, "note", NULL);

    case_check_keys(json, keys);
    assert_int_equal(yield.ms, case_number(json, "ms", 0));
    assert_int_equal(yield.was_clamped, wanted != NULL);
    if (wanted)
        assert_string_equal(note, wanted);
    else
        assert_null(note);
}

int main(void)
{
    return cases_run("job/yield", yield_case, NULL, 0);
}
