/* See approval.h. */
#include "approval/approval.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"

#include <stdint.h>

static const char *const decision_names[APPROVAL_DECISIONS] = {
    [APPROVAL_APPROVED] = "approved",
    [APPROVAL_FOR_SESSION] = "approved_for_session",
    [APPROVAL_WITH_RULE] = "approved_execpolicy_amendment",
    [APPROVAL_UNCONFINED] = "approved_without_sandbox",
    [APPROVAL_DENIED] = "denied",
    [APPROVAL_TIMED_OUT] = "timed_out",
    [APPROVAL_ABORT] = "abort",
};

void approval_request_done(struct approval_request *question)
{
    free(question->id);
    strv_done(&question->argv);
    free(question->cwd);
    free(question->reason);
    free(question->covers);
    strv_done(&question->proposal);
    strv_done(&question->keys);
    *question = (struct approval_request){0};
}

void approval_answer_done(struct approval_answer *answer)
{
    free(answer->reason);
    *answer = (struct approval_answer){0};
}

const char *approval_decision_name(enum approval_decision decision)
{
    return decision_names[decision];
}

bool approval_decision_is_yes(enum approval_decision decision)
{
    return decision <= APPROVAL_UNCONFINED;
}

bool approval_offers(const struct approval_request *question, enum approval_decision decision)
{
    return question->offers & 1u << decision;
}

int approval_decision_parse(const char *word, const struct approval_request *question,
                            enum approval_decision *ret, struct err *err)
{
    AUTO(buf_done) struct buf list = {0};

    buf_init(&list, SIZE_MAX / 2);
    for (int i = 0; i < APPROVAL_DECISIONS; i++) {
        if (!approval_offers(question, (enum approval_decision)i))
            continue;
        if (str_eq(word, decision_names[i])) {
            *ret = (enum approval_decision)i;
            return 0;
        }
        buf_appendf(&list, "%s%s", list.len ? ", " : "", decision_names[i]);
    }
    return err_set(err, ERR_INVALID, "\"%s\" is not one of the decisions offered: %s", word,
                   list.data ? list.data : "none");
}

static json_t *words_to_json(const struct strv *words)
{
    json_t *json = json_array();

    for (size_t i = 0; i < words->len; i++)
        json_array_append_new(json, json_lossy(words->items[i]));
    return json;
}

static json_t *offers_to_json(const struct approval_request *question)
{
    json_t *json = json_array();

    for (int i = 0; i < APPROVAL_DECISIONS; i++)
        if (approval_offers(question, (enum approval_decision)i))
            json_array_append_new(json, json_string(decision_names[i]));
    return json;
}

json_t *approval_request_to_json(const struct approval_request *question)
{
    bool has_proposal = approval_offers(question, APPROVAL_WITH_RULE);

    return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "id", json_lossy(question->id),
                     "kind", question->kind == APPROVAL_KIND_COMMAND ? "command" : "retry", "argv",
                     words_to_json(&question->argv), "cwd", json_lossy(question->cwd), "reason",
                     json_lossy(question->reason), "covers", json_lossy(question->covers),
                     "proposed_execpolicy_amendment",
                     has_proposal ? words_to_json(&question->proposal) : json_null(),
                     "available_decisions", offers_to_json(question));
}

json_t *approval_answer_to_json(const struct approval_answer *answer)
{
    return json_pack("{s:s, s:s, s:o}", "decision", approval_decision_name(answer->decision), "by",
                     answer->by, "reason", json_lossy(answer->reason));
}
