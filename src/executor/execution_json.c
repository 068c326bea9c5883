/* The result of an execution as programs read it. */
#include "base/json.h"
#include "executor/execution.h"
#include "job/result_json.h"

const char *execution_outcome_name(enum execution_outcome outcome)
{
    static const char *const names[] = {
        [EXECUTION_RAN] = "ran",
        [EXECUTION_FORBIDDEN] = "forbidden",
        [EXECUTION_REJECTED] = "rejected",
        [EXECUTION_FAILED] = "failed",
    };

    return names[outcome];
}

int execution_exit_code(const struct execution_result *result)
{
    if (result->outcome == EXECUTION_RAN)
        return job_result_exit_code(&result->attempts[result->attempts_len - 1].result);
    return result->outcome == EXECUTION_FAILED ? EXECUTION_EXIT_FAILED : EXECUTION_EXIT_REFUSED;
}

static json_t *attempts_to_json(const struct execution_result *result, struct result_texts *texts)
{
    json_t *json = json_array();

    for (size_t i = 0; i < result->attempts_len; i++) {
        const struct execution_attempt *attempt = &result->attempts[i];

        json_array_append_new(json,
                              json_pack("{s:s, s:o, s:o}", "place", run_where_name(attempt->where),
                                        "widened", json_lossy(attempt->widened), "result",
                                        result_to_json(&attempt->result, texts)));
    }
    return json;
}

json_t *execution_to_json(const struct execution_result *result, struct result_texts *texts)
{
    bool is_rejected = result->outcome == EXECUTION_REJECTED;

    return json_pack(
        "{s:s, s:o, s:o, s:O, s:o}", "outcome", execution_outcome_name(result->outcome), "decision",
        is_rejected ? json_string(approval_decision_name(result->decision)) : json_null(), "reason",
        json_lossy(result->reason), "questions", result->questions, "attempts",
        attempts_to_json(result, texts));
}
