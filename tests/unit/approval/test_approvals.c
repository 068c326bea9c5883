/* approvals: who is asked, who joins, what is remembered, and time that runs out; by approvers that
 * the test holds in its hand. */
#include "../base/support.h"

#include "approval/approvals.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "loop/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct puppet {
    struct approver approver;
    char id[32]; /* of the question that it has; "" for none */
    unsigned asked;
    unsigned withdrawn;
    bool passes;
};

static void puppet_ask(struct approver *approver, const struct approval_request *question)
{
    struct puppet *puppet = (struct puppet *)approver;

    puppet->asked++;
    snprintf(puppet->id, sizeof puppet->id, "%s", question->id);
    if (puppet->passes)
        approvals_pass(approver->approvals, question->id);
}

static void puppet_withdraw(struct approver *approver, const char *id)
{
    struct puppet *puppet = (struct puppet *)approver;

    assert_string_equal(puppet->id, id);
    puppet->withdrawn++;
    puppet->id[0] = '\0';
}

static void puppet_free(struct approver *approver)
{
    (void)approver;
}

struct waiter {
    unsigned answers;
    enum approval_decision decision;
    const char *by;
    bool *all; /* set when it is called */
};

static void on_answer(void *data, const struct approval_answer *answer)
{
    struct waiter *waiter = data;

    waiter->answers++;
    waiter->decision = answer->decision;
    waiter->by = answer->by;
    if (waiter->all)
        *waiter->all = true;
}

struct scene {
    struct loop *loop;
    struct approvals *approvals;
    struct puppet first;
    struct puppet second;
};

static const struct puppet idle = {
    .approver = {.ask = puppet_ask, .withdraw = puppet_withdraw, .free = puppet_free}};

static struct scene scene;

static void scene_init(uint64_t timeout_ns)
{
    struct err err;

    scene = (struct scene){.loop = loop_new(&err), .first = idle, .second = idle};
    assert_non_null(scene.loop);
    scene.approvals = approvals_new(scene.loop, timeout_ns);
    approvals_add_approver(scene.approvals, &scene.first.approver);
    approvals_add_approver(scene.approvals, &scene.second.approver);
}

static int scene_teardown(void **state)
{
    approvals_free(scene.approvals);
    loop_free(scene.loop);
    return 0;
}

static struct approval_request question(const char *key)
{
    struct approval_request question = {
        .reason = alloc_str("why"),
        .covers = alloc_str("this"),
        .offers = 1u << APPROVAL_APPROVED | 1u << APPROVAL_FOR_SESSION | 1u << APPROVAL_DENIED,
    };

    if (key)
        strv_push(&question.keys, key);
    return question;
}

static struct approval_wait *ask(const char *key, struct waiter *waiter)
{
    struct approval_request asked = question(key);

    return approvals_ask(scene.approvals, &asked, on_answer, waiter);
}

/* Runs what is due: the deferred beginning of each question. */
static void turn(void)
{
    struct err err;

    for (int i = 0; i < 3; i++)
        assert_int_equal(loop_dispatch(scene.loop, &err), 0);
}

static void until(bool *done)
{
    struct err err;

    assert_int_equal(loop_run(scene.loop, done, &err), 0);
}

static void answer(const char *id, enum approval_decision decision)
{
    struct approval_answer given = {.decision = decision, .by = "client"};
    struct err err;

    if (approvals_answer(scene.approvals, id, &given, &err))
        fail_msg("%s", err.msg);
}

static void first_asker_is_asked_and_answers(void **state)
{
    struct waiter waiter = {0};

    scene_init(0);
    ask("k", &waiter);
    assert_int_equal(scene.first.asked, 0); /* not from within approvals_ask() */
    turn();
    assert_int_equal(scene.first.asked, 1);
    assert_int_equal(scene.second.asked, 0);
    assert_int_equal(waiter.answers, 0);
    answer(scene.first.id, APPROVAL_APPROVED);
    assert_int_equal(waiter.answers, 1);
    assert_int_equal(waiter.decision, APPROVAL_APPROVED);
    assert_string_equal(waiter.by, "client");
}

static void who_passes_leaves_it_to_the_next(void **state)
{
    struct waiter waiter = {0};

    scene_init(0);
    scene.first.passes = true;
    ask("k", &waiter);
    turn();
    assert_int_equal(scene.second.asked, 1);
    assert_int_equal(waiter.answers, 0);
    approvals_pass(scene.approvals, scene.second.id);
    assert_int_equal(waiter.answers, 1);
    assert_int_equal(waiter.decision, APPROVAL_DENIED);
    assert_string_equal(waiter.by, "nobody");
}

static void the_same_question_is_joined(void **state)
{
    struct waiter waiters[3] = {0};

    scene_init(0);
    ask("k", &waiters[0]);
    turn();
    ask("k", &waiters[1]);
    ask("other", &waiters[2]);
    assert_int_equal(scene.first.asked, 1);
    answer(scene.first.id, APPROVAL_DENIED);
    assert_int_equal(waiters[0].answers, 1);
    assert_int_equal(waiters[1].answers, 1);
    assert_int_equal(waiters[2].answers, 0);
}

/* The id that is told before the question is asked, and by which it is asked then. */
static char *name_and_ask(const char *key, struct waiter *waiter)
{
    struct approval_request asked = question(key);
    char *id;

    approvals_name(scene.approvals, &asked);
    id = alloc_str(asked.id);
    approvals_ask(scene.approvals, &asked, on_answer, waiter);
    return id;
}

static void a_question_has_its_name_before_it_is_asked(void **state)
{
    struct waiter waiters[3] = {0};
    AUTO_FREE char *first = NULL;
    AUTO_FREE char *joined = NULL;
    AUTO_FREE char *other = NULL;

    scene_init(0);
    first = name_and_ask("k", &waiters[0]);
    joined = name_and_ask("k", &waiters[1]);
    turn();
    assert_string_equal(scene.first.id, first);
    assert_string_equal(joined, first);
    other = name_and_ask(NULL, &waiters[2]);
    assert_string_not_equal(other, first);
    answer(other, APPROVAL_DENIED);
    assert_int_equal(waiters[2].answers, 1);
    answer(joined, APPROVAL_DENIED);
    assert_int_equal(waiters[0].answers + waiters[1].answers, 2);
}

static void without_keys_nothing_is_joined_or_remembered(void **state)
{
    struct waiter waiters[2] = {0};
    const struct strv none = {0};

    scene_init(0);
    ask(NULL, &waiters[0]);
    ask(NULL, &waiters[1]);
    turn();
    assert_int_equal(scene.first.asked, 2);
    answer(scene.first.id, APPROVAL_FOR_SESSION);
    assert_int_equal(waiters[0].answers + waiters[1].answers, 1);
    assert_false(approvals_has(scene.approvals, &none));
}

static void only_a_yes_for_the_session_is_remembered(void **state)
{
    AUTO(strv_done) struct strv keys = {0};
    struct waiter waiter = {0};

    scene_init(0);
    strv_push(&keys, "k");
    for (int i = 0; i < 2; i++) {
        assert_false(approvals_has(scene.approvals, &keys));
        ask("k", &waiter);
        turn();
        answer(scene.first.id, i ? APPROVAL_FOR_SESSION : APPROVAL_APPROVED);
    }
    assert_true(approvals_has(scene.approvals, &keys));
    strv_push(&keys, "another");
    assert_false(approvals_has(scene.approvals, &keys));
}

static void time_that_runs_out_is_a_no(void **state)
{
    bool done = false;
    struct waiter waiter = {.all = &done};

    scene_init(1000000);
    ask("k", &waiter);
    until(&done);
    assert_int_equal(waiter.decision, APPROVAL_TIMED_OUT);
    assert_int_equal(scene.first.withdrawn, scene.first.asked);
}

static void a_question_that_nobody_waits_for_is_withdrawn(void **state)
{
    struct waiter waiters[2] = {0};
    struct approval_wait *waits[2];
    struct approval_answer late = {.decision = APPROVAL_APPROVED, .by = "client"};
    char id[32];
    struct err err;

    scene_init(0);
    waits[0] = ask("k", &waiters[0]);
    waits[1] = ask("k", &waiters[1]);
    turn();
    strcpy(id, scene.first.id); /* allow strcpy: the same size */
    approvals_leave(waits[0]);
    assert_int_equal(scene.first.withdrawn, 0);
    approvals_leave(waits[1]);
    assert_int_equal(scene.first.withdrawn, 1);
    assert_int_equal(approvals_answer(scene.approvals, id, &late, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_int_equal(waiters[0].answers + waiters[1].answers, 0);
}

static void only_what_is_offered_counts_but_a_no_always_does(void **state)
{
    struct waiter waiter = {0};
    struct approval_answer wide = {.decision = APPROVAL_UNCONFINED, .by = "client"};
    struct err err;

    scene_init(0);
    ask("k", &waiter);
    turn();
    assert_int_equal(approvals_answer(scene.approvals, scene.first.id, &wide, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(waiter.answers, 0);
    answer(scene.first.id, APPROVAL_ABORT);
    assert_int_equal(waiter.decision, APPROVAL_ABORT);
}

static void open_questions_are_listed(void **state)
{
    struct waiter waiter = {0};
    AUTO_JSON json_t *list = NULL;
    const json_t *item;

    scene_init(0);
    ask("k", &waiter);
    list = approvals_to_json(scene.approvals);
    assert_int_equal(json_array_size(list), 1);
    item = json_array_get(list, 0);
    assert_string_equal(json_string_value(json_object_get(item, "reason")), "why");
    assert_int_equal(json_array_size(json_object_get(item, "available_decisions")), 3);
    assert_true(json_is_null(json_object_get(item, "proposed_execpolicy_amendment")));
}

#define STAGED(test) cmocka_unit_test_teardown(test, scene_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGED(first_asker_is_asked_and_answers),
        STAGED(who_passes_leaves_it_to_the_next),
        STAGED(the_same_question_is_joined),
        STAGED(a_question_has_its_name_before_it_is_asked),
        STAGED(without_keys_nothing_is_joined_or_remembered),
        STAGED(only_a_yes_for_the_session_is_remembered),
        STAGED(time_that_runs_out_is_a_no),
        STAGED(a_question_that_nobody_waits_for_is_withdrawn),
        STAGED(only_what_is_offered_counts_but_a_no_always_does),
        STAGED(open_questions_are_listed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
