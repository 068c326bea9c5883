/* The host of libcordon as an approver: questions go out through on_question and come
 * back through cordon_answer_question(), in the same moment or an hour later. */
#include "approval/approvals.h"
#include "libcordon/engine.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "base/strv.h"
#include "loop/loop.h"

#include <stdlib.h>

_Static_assert((int)CORDON_ABORT == (int)APPROVAL_ABORT, "the decisions are the same");
_Static_assert((int)CORDON_QUESTION_RETRY == (int)APPROVAL_KIND_RETRY, "the kinds are the same");

struct approval_bridge {
    struct approver approver; /* first */
    void (*on_question)(void *data, const struct cordon_question *question);
    void (*on_question_over)(void *data, const char *id);
    void *data;
    const char *answered; /* the question that the host is just answering; NULL: none */
    struct strv over;     /* ids that on_question_over is still to be told */
    struct loop_timer *tell;
};

static void host_ask(struct approver *approver, const struct approval_request *question)
{
    const struct approval_bridge *host = (const struct approval_bridge *)approver;
    bool has_prefix = approval_offers(question, APPROVAL_WITH_RULE);
    const struct cordon_question shown = {
        .id = question->id,
        .kind = (int)question->kind,
        .argv = (const char *const *)strv_view(&question->argv),
        .cwd = question->cwd,
        .reason = question->reason,
        .covers = question->covers,
        .prefix = has_prefix ? (const char *const *)strv_view(&question->proposal) : NULL,
        .offers = question->offers,
    };

    host->on_question(host->data, &shown);
}

/* From the loop, as every callback: a question is also withdrawn by calls of the host itself. */
static void on_tell(void *data)
{
    struct approval_bridge *host = data;
    AUTO(strv_done) struct strv over = host->over;

    host->over = (struct strv){0};
    for (size_t i = 0; i < over.len; i++)
        host->on_question_over(host->data, over.items[i]);
}

static void host_withdraw(struct approver *approver, const char *id)
{
    struct approval_bridge *host = (struct approval_bridge *)approver;

    if (!host->on_question_over || (host->answered && str_eq(host->answered, id)))
        return;
    strv_push(&host->over, id);
    loop_timer_start(host->tell, 0);
}

static void host_free(struct approver *approver)
{
    struct approval_bridge *host = (struct approval_bridge *)approver;

    loop_timer_free(host->tell);
    strv_done(&host->over);
    free(host);
}

struct approvals *approval_bridge_new(struct cordon_engine *engine,
                                      const struct cordon_engine_options *options)
{
    struct approvals *approvals;
    struct approval_bridge *host;

    if (!options->on_question)
        return NULL;
    approvals = approvals_new(engine->loop, ms_to_ns(options->question_timeout_ms));
    host = alloc_zero(1, sizeof *host);
    host->approver =
        (struct approver){.ask = host_ask, .withdraw = host_withdraw, .free = host_free};
    host->on_question = options->on_question;
    host->on_question_over = options->on_question_over;
    host->data = options->question_data;
    host->tell = loop_timer_new(engine->loop, on_tell, host);
    approvals_add_approver(approvals, &host->approver);
    engine->approver = host;
    return approvals;
}

int cordon_answer_question(struct cordon_engine *engine, const char *id, int decision,
                           const char *reason, struct cordon_error *error)
{
    struct approval_answer answer = {.by = "host"};
    struct err err;
    int status;

    if (decision < 0 || decision > CORDON_ABORT)
        err_set(&err, ERR_INVALID, "%d is no enum cordon_decision", decision);
    else if (!engine->approvals)
        err_set(&err, ERR_NOT_FOUND, "there is no open question \"%s\"", id);
    if (decision < 0 || decision > CORDON_ABORT || !engine->approvals)
        return error_give(error, &err);
    answer.decision = (enum approval_decision)decision;
    answer.reason = alloc_str(reason);
    engine->approver->answered = id;
    status = approvals_answer(engine->approvals, id, &answer, &err);
    engine->approver->answered = NULL;
    return status ? error_give(error, &err) : 0;
}
