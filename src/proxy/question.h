/* What somebody is asked about: once for each host, port and protocol, however many connections wait for the answer,
 * which counts until the command ends. */
#pragma once

#include "base/list.h"
#include "policy/network_policy.h"

#include <stdbool.h>
#include <stdint.h>

struct command;
struct question;
struct target;

struct questions {
    struct list list; /* of question.in_list, unanswered and answered */
    unsigned open_len, answered_len;
    uint64_t last_id;
};

struct question_waiter {
    struct question *question; /* NULL: waits for none */
    struct list in_question;
    void (*on_answer)(struct question_waiter *waiter, bool is_yes);
};

void questions_done(struct questions *questions);

/* NETWORK_ALLOW or NETWORK_DENY when this was answered, NETWORK_ASK when not. */
enum network_verdict question_known(const struct questions *questions, const struct target *target);

/* Joins the question, or asks it. False: nobody can be asked; `*ret_limit` says why, if by a limit. */
bool question_ask(struct command *command, const struct target *target,
                  struct question_waiter *waiter, const char **ret_limit);

/* Of one that waits no more; the question is withdrawn with its last. */
void question_leave(struct command *command, struct question_waiter *waiter);

void question_answer(struct command *command, uint64_t id, bool is_yes);
