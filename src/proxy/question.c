/* See question.h. A question that is withdrawn is forgotten, so it can be asked anew; one that was answered stays. When too
 * many were answered the oldest no is forgotten first, then the oldest yes: who forgets asks again. */
#include "proxy/question.h"

#include "base/alloc.h"
#include "base/str.h"
#include "proxy/command.h"
#include "proxy/limits.h"

#include <stdlib.h>

enum question_state { OPEN, SAID_NO, SAID_YES };

struct question {
    struct list in_list;
    uint64_t id;
    enum question_state state;
    enum network_protocol protocol;
    uint16_t port;
    struct list waiting; /* of question_waiter.in_question */
    char *host;
};

static void question_free(struct question *question)
{
    list_remove(&question->in_list);
    free(question->host);
    free(question);
}

void questions_done(struct questions *questions)
{
    struct question *question, *following;

    list_for_each_safe(question, following, &questions->list, in_list)
        question_free(question);
}

static struct question *find(const struct questions *questions, const struct target *target)
{
    struct question *question;

    list_for_each(question, &questions->list, in_list)
        if (question->port == target->port && question->protocol == target->protocol &&
            str_eq(question->host, target->host.text))
            return question;
    return NULL;
}

enum network_verdict question_known(const struct questions *questions, const struct target *target)
{
    const struct question *question = find(questions, target);

    if (!question || question->state == OPEN)
        return NETWORK_ASK;
    return question->state == SAID_YES ? NETWORK_ALLOW : NETWORK_DENY;
}

bool question_ask(struct command *command, const struct target *target,
                  struct question_waiter *waiter, const char **ret_limit)
{
    struct questions *questions = &command->questions;
    struct question *question = find(questions, target);

    *ret_limit = NULL;
    if (!question && questions->open_len == LIMIT_QUESTIONS) {
        *ret_limit = "32 questions of the command have no answer yet, which is the limit";
        return false;
    }
    if (!question) {
        if (!facts_asked(command, target, questions->last_id + 1))
            return false;
        question = alloc_zero(1, sizeof *question);
        *question = (struct question){.id = ++questions->last_id,
                                      .protocol = target->protocol,
                                      .port = target->port,
                                      .host = alloc_str(target->host.text)};
        list_append(&questions->list, &question->in_list);
        questions->open_len++;
    }
    waiter->question = question;
    list_append(&question->waiting, &waiter->in_question);
    return true;
}

void question_leave(struct command *command, struct question_waiter *waiter)
{
    struct question *question = waiter->question;
    struct target target;

    list_remove(&waiter->in_question);
    waiter->question = NULL;
    if (!question || question->state != OPEN || !list_is_empty(&question->waiting))
        return;
    target = (struct target){.port = question->port, .protocol = question->protocol};
    snprintf(target.host.text, sizeof target.host.text, "%s", question->host);
    facts_withdrawn(command, &target, question->id);
    command->questions.open_len--;
    question_free(question);
}

static void forget_oldest(struct questions *questions)
{
    struct question *question, *oldest = NULL;

    list_for_each(question, &questions->list, in_list)
        if (question->state != OPEN && (!oldest || question->state < oldest->state))
            oldest = question;
    if (oldest) {
        question_free(oldest);
        questions->answered_len--;
    }
}

void question_answer(struct command *command, uint64_t id, bool is_yes)
{
    struct questions *questions = &command->questions;
    struct question_waiter *waiter;
    struct question *question;

    list_for_each(question, &questions->list, in_list)
        if (question->id == id)
            break;
    if (!question || question->state != OPEN)
        return; /* it was withdrawn meanwhile */
    question->state = is_yes ? SAID_YES : SAID_NO;
    questions->open_len--;
    if (questions->answered_len == LIMIT_ANSWERS)
        forget_oldest(questions);
    questions->answered_len++;
    while ((waiter = list_first(&question->waiting, struct question_waiter, in_question))) {
        list_remove(&waiter->in_question);
        waiter->question = NULL;
        waiter->on_answer(waiter, is_yes);
    }
}
