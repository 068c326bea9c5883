/* Requests to a peer that it has not answered yet. Internal to rpc. */
#pragma once

#include "rpc/rpc.h"

struct calls_entry;

struct calls {
    struct calls_entry *first; /* oldest */
    int64_t last_id;
};

/* Returns the new id, from 1; `due_ns` is UINT64_MAX for never. */
int64_t calls_add(struct calls *calls, const struct rpc_call *call, uint64_t due_ns);

/* Forgets a call without answering it; it stays known, so that a late answer is no offence. */
void calls_cancel(struct calls *calls, int64_t id);

/* Hands the answer to whom it is for. false when nobody asked. */
bool calls_answer(struct calls *calls, const struct rpc_message *answer);

/* Answers with NULL what is due. */
void calls_expire(struct calls *calls, uint64_t now_ns);

/* When the next call is due. */
uint64_t calls_due_ns(const struct calls *calls);

/* Answers all that is left with NULL. */
void calls_fail(struct calls *calls);

/* Forgets all; nobody is called back. */
void calls_done(struct calls *calls);
