/* See approvals.h.
 *
 *     asked --> first approver --pass--> next approver ... --pass--> none: denied
 *                   \-- answer, from it or another --> all that wait are called, one by one
 *                    \-- time is up --> timed out
 *
 * A question leaves the list before its answer is told, so a callback finds the state
 * that holds afterwards, and may ask, answer and leave as it likes. */
#include "approval/approvals.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"
#include "loop/loop.h"

struct approval_wait {
    struct open_question *question;
    void (*on_answer)(void *data, const struct approval_answer *answer);
    void *data;
};

struct open_question {
    struct approvals *approvals;
    struct approval_request question;
    struct approval_wait **waits;
    size_t len;
    size_t cap;
    size_t approver; /* index of the one that has it; the number of approvers when none has */
    struct loop_timer *begin; /* until the first approver has it */
    struct loop_timer *timeout;
};

struct approvals {
    struct loop *loop;
    uint64_t timeout_ns;
    struct approver **approvers;
    size_t askers_len;
    size_t askers_cap;
    struct open_question **open;
    size_t open_len;
    size_t open_cap;
    struct strv granted; /* keys */
    uint64_t last_id;
};

struct approvals *approvals_new(struct loop *loop, uint64_t timeout_ns)
{
    struct approvals *approvals = alloc_zero(1, sizeof *approvals);

    approvals->loop = loop;
    approvals->timeout_ns = timeout_ns;
    return approvals;
}

static void open_free(struct open_question *open)
{
    loop_timer_free(open->begin);
    loop_timer_free(open->timeout);
    approval_request_done(&open->question);
    for (size_t i = 0; i < open->len; i++)
        free(open->waits[i]);
    free(open->waits);
    free(open);
}

void approvals_free(struct approvals *approvals)
{
    if (!approvals)
        return;
    for (size_t i = 0; i < approvals->open_len; i++)
        open_free(approvals->open[i]);
    for (size_t i = 0; i < approvals->askers_len; i++)
        approvals->approvers[i]->free(approvals->approvers[i]);
    free(approvals->open);
    free(approvals->approvers);
    strv_done(&approvals->granted);
    free(approvals);
}

void approvals_add_approver(struct approvals *approvals, struct approver *approver)
{
    approver->approvals = approvals;
    approvals->approvers = alloc_grow(approvals->approvers, approvals->askers_len,
                                      &approvals->askers_cap, sizeof *approvals->approvers);
    approvals->approvers[approvals->askers_len++] = approver;
}

bool approvals_has(const struct approvals *approvals, const struct strv *keys)
{
    for (size_t i = 0; i < keys->len; i++)
        if (!strv_has(&approvals->granted, keys->items[i]))
            return false;
    return keys->len > 0;
}

/* --- ending --- */

static void open_remove(struct open_question *open)
{
    struct approvals *approvals = open->approvals;
    size_t at = 0;

    while (approvals->open[at] != open)
        at++;
    approvals->open_len--;
    for (; at < approvals->open_len; at++)
        approvals->open[at] = approvals->open[at + 1];
}

/* The approver that has it need not answer any more. */
static void open_withdraw(struct open_question *open)
{
    struct approvals *approvals = open->approvals;

    if (open->approver < approvals->askers_len && !open->begin) {
        struct approver *approver = approvals->approvers[open->approver];

        approver->withdraw(approver, open->question.id);
    }
}

static void grant(struct approvals *approvals, const struct strv *keys)
{
    for (size_t i = 0; i < keys->len; i++)
        if (!strv_has(&approvals->granted, keys->items[i]))
            strv_push(&approvals->granted, keys->items[i]);
}

/* Calls all that wait, and frees the question. */
static void open_finish(struct open_question *open, const struct approval_answer *answer)
{
    open_remove(open);
    if (answer->decision == APPROVAL_FOR_SESSION)
        grant(open->approvals, &open->question.keys);
    while (open->len) {
        struct approval_wait *wait = open->waits[--open->len];

        wait->on_answer(wait->data, answer);
        free(wait);
    }
    open_free(open);
}

/* --- asking --- */

static void open_ask_next(struct open_question *open)
{
    static const struct approval_answer nobody = {.decision = APPROVAL_DENIED, .by = "nobody"};
    struct approvals *approvals = open->approvals;

    if (open->approver < approvals->askers_len)
        approvals->approvers[open->approver]->ask(approvals->approvers[open->approver],
                                                  &open->question);
    else
        open_finish(open, &nobody);
}

static void on_begin(void *data)
{
    struct open_question *open = data;

    loop_timer_free(TAKE_PTR(open->begin));
    open_ask_next(open);
}

static void on_timeout(void *data)
{
    static const struct approval_answer late = {.decision = APPROVAL_TIMED_OUT, .by = "nobody"};
    struct open_question *open = data;

    open_withdraw(open);
    open_finish(open, &late);
}

static bool is_same_list(const struct strv *a, const struct strv *b)
{
    for (size_t i = 0; a->len == b->len && i < a->len; i++)
        if (!str_eq(a->items[i], b->items[i]))
            return false;
    return a->len == b->len;
}

/* Who is asked sees a patch, and its keys say only which files it is of. */
static bool is_same_call(const struct approval_request *a, const struct approval_request *b)
{
    return is_same_list(&a->argv, &b->argv) && str_eq(a->cwd, b->cwd);
}

/* An open question with the same meaning: a yes to it covers this one, too. */
static struct open_question *find_same(const struct approvals *approvals,
                                       const struct approval_request *question)
{
    for (size_t i = 0; i < approvals->open_len && question->keys.len; i++) {
        const struct approval_request *other = &approvals->open[i]->question;

        if (other->kind == question->kind && other->offers == question->offers &&
            is_same_list(&other->keys, &question->keys) &&
            (!question->is_wider || is_same_call(other, question)) &&
            is_same_list(&other->proposal, &question->proposal) &&
            str_eq(other->covers, question->covers))
            return approvals->open[i];
    }
    return NULL;
}

static char *new_id(struct approvals *approvals)
{
    return alloc_strf("q%llu", (unsigned long long)++approvals->last_id);
}

void approvals_name(struct approvals *approvals, struct approval_request *question)
{
    const struct open_question *same = find_same(approvals, question);

    question->id = same ? alloc_str(same->question.id) : new_id(approvals);
}

static struct open_question *open_new(struct approvals *approvals,
                                      struct approval_request *question)
{
    struct open_question *open = alloc_zero(1, sizeof *open);

    open->approvals = approvals;
    open->question = *question;
    *question = (struct approval_request){0};
    if (!open->question.id)
        open->question.id = new_id(approvals);
    open->begin = loop_timer_new(approvals->loop, on_begin, open);
    loop_timer_start(open->begin, 0);
    if (approvals->timeout_ns) {
        open->timeout = loop_timer_new(approvals->loop, on_timeout, open);
        loop_timer_start(open->timeout, approvals->timeout_ns);
    }
    approvals->open = alloc_grow(approvals->open, approvals->open_len, &approvals->open_cap,
                                 sizeof *approvals->open);
    approvals->open[approvals->open_len++] = open;
    return open;
}

struct approval_wait *
approvals_ask(struct approvals *approvals, struct approval_request *question,
              void (*on_answer)(void *data, const struct approval_answer *answer), void *data)
{
    struct open_question *open = find_same(approvals, question);
    struct approval_wait *wait = alloc_zero(1, sizeof *wait);

    if (open)
        approval_request_done(question);
    else
        open = open_new(approvals, question);
    *wait = (struct approval_wait){.question = open, .on_answer = on_answer, .data = data};
    open->waits = alloc_grow(open->waits, open->len, &open->cap, sizeof *open->waits);
    open->waits[open->len++] = wait;
    return wait;
}

void approvals_leave(struct approval_wait *wait)
{
    struct open_question *open = wait->question;
    size_t at = 0;

    while (open->waits[at] != wait)
        at++;
    open->waits[at] = open->waits[--open->len];
    free(wait);
    if (open->len)
        return;
    open_withdraw(open);
    open_remove(open);
    open_free(open);
}

/* --- answering --- */

static struct open_question *open_find(const struct approvals *approvals, const char *id)
{
    for (size_t i = 0; i < approvals->open_len; i++)
        if (str_eq(approvals->open[i]->question.id, id))
            return approvals->open[i];
    return NULL;
}

/* What a question need not offer: a no is always possible. */
static bool is_possible(const struct approval_request *question, enum approval_decision decision)
{
    return !approval_decision_is_yes(decision) || approval_offers(question, decision);
}

int approvals_answer(struct approvals *approvals, const char *id, struct approval_answer *answer,
                     struct err *err)
{
    AUTO(approval_answer_done) struct approval_answer taken = *answer;
    struct open_question *open = open_find(approvals, id);

    *answer = (struct approval_answer){0};
    if (!open)
        return err_set(err, ERR_NOT_FOUND, "there is no open question \"%s\"", id);
    if (!is_possible(&open->question, taken.decision))
        return err_set(err, ERR_INVALID, "the question \"%s\" does not offer \"%s\"", id,
                       approval_decision_name(taken.decision));
    open_withdraw(open);
    open_finish(open, &taken);
    return 0;
}

void approvals_pass(struct approvals *approvals, const char *id)
{
    struct open_question *open = open_find(approvals, id);

    if (!open)
        return;
    open->approver++;
    open_ask_next(open);
}

json_t *approvals_to_json(const struct approvals *approvals)
{
    json_t *json = json_array();

    for (size_t i = 0; i < approvals->open_len; i++)
        json_array_append_new(json, approval_request_to_json(&approvals->open[i]->question));
    return json;
}
