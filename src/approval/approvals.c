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
#include "base/list.h"
#include "base/str.h"
#include "loop/loop.h"

struct approval_wait {
    struct list link;
    struct open_question *question;
    void (*on_answer)(void *data, const struct approval_answer *answer);
    void *data;
};

struct open_question {
    struct list link;
    struct approvals *approvals;
    struct approval_request question;
    struct list waits;
    struct approver *approver; /* that has it; NULL: none yet, or none any more */
    struct loop_timer *begin;  /* until the first approver has it */
    struct loop_timer *timeout;
};

struct approvals {
    struct loop *loop;
    uint64_t timeout_ns;
    struct list approvers; /* in the order in which they are asked */
    struct list open;
    struct strv granted; /* keys */
    struct strv refused;
    uint64_t last_id;
};

struct approvals *approvals_new(struct loop *loop, uint64_t timeout_ns)
{
    struct approvals *approvals = alloc_zero(1, sizeof *approvals);

    approvals->loop = loop;
    approvals->timeout_ns = timeout_ns;
    return approvals;
}

static void wait_free(struct approval_wait *wait)
{
    list_remove(&wait->link);
    free(wait);
}

static void open_free(struct open_question *open)
{
    list_remove(&open->link);
    loop_timer_free(open->begin);
    loop_timer_free(open->timeout);
    approval_request_done(&open->question);
    while (!list_is_empty(&open->waits))
        wait_free(list_first(&open->waits, struct approval_wait, link));
    free(open);
}

void approvals_free(struct approvals *approvals)
{
    struct approver *approver;
    struct approver *next;

    if (!approvals)
        return;
    while (!list_is_empty(&approvals->open))
        open_free(list_first(&approvals->open, struct open_question, link));
    list_for_each_safe(approver, next, &approvals->approvers, link)
        approver->free(approver);
    strv_done(&approvals->granted);
    strv_done(&approvals->refused);
    free(approvals);
}

void approvals_add_approver(struct approvals *approvals, struct approver *approver)
{
    approver->approvals = approvals;
    list_append(&approvals->approvers, &approver->link);
}

bool approvals_has(const struct approvals *approvals, const struct strv *keys)
{
    for (size_t i = 0; i < keys->len; i++)
        if (!strv_has(&approvals->granted, keys->items[i]))
            return false;
    return keys->len > 0;
}

static bool has_host(const struct strv *keys, const struct approval_host *host)
{
    AUTO_FREE char *key = host->name ? approval_host_key(host) : NULL;

    return key && strv_has(keys, key);
}

bool approvals_allows_host(const struct approvals *approvals, const struct approval_host *host)
{
    return has_host(&approvals->granted, host);
}

bool approvals_denies_host(const struct approvals *approvals, const struct approval_host *host)
{
    return has_host(&approvals->refused, host);
}

/* --- ending --- */

/* The approver that has it need not answer any more. */
static void open_withdraw(struct open_question *open)
{
    if (open->approver && !open->begin)
        open->approver->withdraw(open->approver, open->question.id);
}

static void add_key(struct strv *keys, const char *key)
{
    if (!strv_has(keys, key))
        strv_push(keys, key);
}

/* Later questions find the answer. */
static void remember(struct open_question *open, const struct approval_answer *answer)
{
    struct approvals *approvals = open->approvals;
    const struct approval_request *question = &open->question;
    AUTO_FREE char *host = question->host.name ? approval_host_key(&question->host) : NULL;

    if (host && answer->decision == APPROVAL_WITH_RULE)
        add_key(&approvals->granted, host);
    else if (host && answer->decision == APPROVAL_NO_BY_RULE)
        add_key(&approvals->refused, host);
    for (size_t i = 0; answer->decision == APPROVAL_FOR_SESSION && i < question->keys.len; i++)
        add_key(&approvals->granted, question->keys.items[i]);
}

/* Calls all that wait, and frees the question. */
static void open_finish(struct open_question *open, const struct approval_answer *answer)
{
    struct approval_wait *wait;

    list_remove(&open->link);
    remember(open, answer);
    while ((wait = list_last(&open->waits, struct approval_wait, link))) {
        list_remove(&wait->link);
        wait->on_answer(wait->data, answer);
        free(wait);
    }
    open_free(open);
}

/* --- asking --- */

static void open_ask_next(struct open_question *open)
{
    static const struct approval_answer no = {.decision = APPROVAL_DENIED, .by = "nobody"};

    if (open->approver)
        open->approver->ask(open->approver, &open->question);
    else
        open_finish(open, &no);
}

static void on_begin(void *data)
{
    struct open_question *open = data;

    loop_timer_free(TAKE_PTR(open->begin));
    open->approver = list_first(&open->approvals->approvers, struct approver, link);
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

/* An open question with the same meaning: a yes to it covers this one, too. */
static struct open_question *find_same(const struct approvals *approvals,
                                       const struct approval_request *question)
{
    struct open_question *open;

    list_for_each(open, &approvals->open, link) {
        const struct approval_request *other = &open->question;

        if (!question->keys.len || other->kind != question->kind ||
            other->offers != question->offers || !is_same_list(&other->keys, &question->keys) ||
            !is_same_list(&other->proposal, &question->proposal) ||
            !str_eq(other->covers, question->covers))
            continue;
        /* Who is asked sees a patch, and its keys say only which files it is of. */
        if (!question->is_wider ||
            (is_same_list(&other->argv, &question->argv) && str_eq(other->cwd, question->cwd)))
            return open;
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

/* 0: none. */
static uint64_t limit_of(const struct approvals *approvals, const struct approval_request *question)
{
    uint64_t limit_ns = approvals->timeout_ns;

    if (question->kind == APPROVAL_KIND_HELD && (!limit_ns || limit_ns > APPROVALS_HELD_NS))
        return APPROVALS_HELD_NS;
    return limit_ns;
}

static struct open_question *open_new(struct approvals *approvals,
                                      struct approval_request *question)
{
    struct open_question *open = alloc_zero(1, sizeof *open);
    uint64_t limit_ns = limit_of(approvals, question);

    open->approvals = approvals;
    open->question = *question;
    *question = (struct approval_request){0};
    if (!open->question.id)
        open->question.id = new_id(approvals);
    open->begin = loop_timer_new(approvals->loop, on_begin, open);
    loop_timer_start(open->begin, 0);
    if (limit_ns) {
        open->timeout = loop_timer_new(approvals->loop, on_timeout, open);
        loop_timer_start(open->timeout, limit_ns);
    }
    list_append(&approvals->open, &open->link);
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
    list_append(&open->waits, &wait->link);
    return wait;
}

void approvals_leave(struct approval_wait *wait)
{
    struct open_question *open = wait->question;

    wait_free(wait);
    if (!list_is_empty(&open->waits))
        return;
    open_withdraw(open);
    open_free(open);
}

/* --- answering --- */

static struct open_question *open_find(const struct approvals *approvals, const char *id)
{
    struct open_question *open;

    list_for_each(open, &approvals->open, link)
        if (str_eq(open->question.id, id))
            return open;
    return NULL;
}

int approvals_answer(struct approvals *approvals, const char *id, struct approval_answer *answer,
                     struct err *err)
{
    AUTO(approval_answer_done) struct approval_answer taken = *answer;
    struct open_question *open = open_find(approvals, id);

    *answer = (struct approval_answer){0};
    if (!open)
        return err_set(err, ERR_NOT_FOUND, "there is no open question \"%s\"", id);
    /* a no need not be offered */
    if (approval_decision_is_yes(taken.decision) &&
        !approval_offers(&open->question, taken.decision))
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
    open->approver =
        list_item(list_after(&approvals->approvers, &open->approver->link), struct approver, link);
    open_ask_next(open);
}

json_t *approvals_to_json(const struct approvals *approvals)
{
    json_t *json = json_array();
    const struct open_question *open;

    list_for_each(open, &approvals->open, link)
        json_array_append_new(json, approval_request_to_json(&open->question));
    return json;
}
