/* Requests to a peer that it has not answered yet. Internal to rpc. */
#pragma once

#include "base/list.h"
#include "rpc/rpc.h"

struct calls {
    struct list entries; /* oldest first */
    int64_t last_id;
};

/* Returns the new id, from 1; `due_ns` is UINT64_MAX for never. */
int64_t calls_add(struct calls *calls, const struct rpc_call *call, uint64_t due_ns);

/* Forgets a call without answering it; it stays known, so that a late answer does no harm. */
void calls_cancel(struct calls *calls, int64_t id);

/* Hands the answer to the caller that it is for. false when it answers no call. */
bool calls_answer(struct calls *calls, const struct rpc_message *answer);

/* Answers with NULL what is due. */
void calls_expire(struct calls *calls, uint64_t now_ns);

/* When the next call is due. */
uint64_t calls_due_ns(const struct calls *calls);

/* Answers all that is left with NULL. */
void calls_fail(struct calls *calls);

/* Forgets all, without callbacks. */
void calls_done(struct calls *calls);
