/* The questions that are open in one session, who is asked, and what was agreed to for all of it.
 *
 *     approvals_new(loop, timeout)
 *     approvals_add_approver()              in the order in which they are asked
 *     approvals_ask() -> on_answer       one question; who asks the same meanwhile joins it
 *     approvals_free()
 *
 * Nothing waits in here: an approver is told of a question and calls approvals_answer() when it has an
 * answer, or approvals_pass() to leave it to the next one. When no approver is left, and when time is
 * up, the answer is no. Others may answer an open question, too: the first answer counts. */
#pragma once

#include "approval/approval.h"
#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

struct approvals;
struct approval_wait;
struct json_t;
struct loop;

/* One that can be asked: a terminal, a program, a client. Embedded in a larger struct. */
struct approver {
    /* Shows the question; the answer comes later or at once. The question is borrowed until it is
     * answered or withdrawn. */
    void (*ask)(struct approver *approver, const struct approval_request *question);
    /* Takes a question back that it was asked: another has answered, or no command waits. */
    void (*withdraw)(struct approver *approver, const char *id);
    void (*free)(struct approver *approver);
    struct approvals *approvals; /* theirs, filled in by approvals_add_approver() */
    struct list link;
};

/* A call that is held keeps its host from being frozen, and so from being suspended. */
#define APPROVALS_HELD_NS UINT64_C(120000000000) /* 120 s */

/* `timeout_ns` for each question; 0: no limit, but APPROVALS_HELD_NS at most for one about something
 * that is held. Never NULL. */
struct approvals *approvals_new(struct loop *loop, uint64_t timeout_ns);
void approvals_free(
    struct approvals *approvals); /* no command waits any more; frees the approvers */

/* Takes the approver over. */
void approvals_add_approver(struct approvals *approvals, struct approver *approver);

/* Every key was approved for the session. False for no keys. */
bool approvals_has(const struct approvals *approvals, const struct strv *keys);

/* What was said of the host for good: at every port. */
bool approvals_allows_host(const struct approvals *approvals, const struct approval_host *host);
bool approvals_denies_host(const struct approvals *approvals, const struct approval_host *host);

/* Gives the question the id that it will be asked by: a new one, or that of an open question which
 * it is going to join. For a caller that tells of it first; nothing else may be asked in between. */
void approvals_name(struct approvals *approvals, struct approval_request *question);

/* Asks, and calls back once, never from in here; the wait is over then. Takes over what the
 * question holds, and gives it an id unless it has one. A question with the same keys that is open
 * already is joined instead; see is_wider. */
struct approval_wait *
approvals_ask(struct approvals *approvals, struct approval_request *question,
              void (*on_answer)(void *data, const struct approval_answer *answer), void *data);

/* Gives up waiting. A question that no command waits for is withdrawn. */
void approvals_leave(struct approval_wait *wait);

/* Answers an open question; takes over what the answer holds, also on failure. ERR_NOT_FOUND when
 * there is no such question (any more), ERR_INVALID when it does not offer the decision. */
int approvals_answer(struct approvals *approvals, const char *id, struct approval_answer *answer,
                     struct err *err);

/* For the approver that has the question: leaves it to the next one. */
void approvals_pass(struct approvals *approvals, const char *id);

/* The open questions, as in approval_request_to_json(); a new reference. */
struct json_t *approvals_to_json(const struct approvals *approvals);
