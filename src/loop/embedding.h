/* What lets a loop be a descriptor in somebody else's loop. Internal to loop.
 *
 * An epoll descriptor is itself readable when something that it watches is, so the one of libevent
 * says it all but for time. Time comes in by a timerfd that it watches, too. */
#pragma once

#include "base/err.h"

#include <stdint.h>

struct embedding;
struct loop;

/* NULL on failure. */
struct embedding *embedding_new(struct loop *loop, struct err *err);
void embedding_free(struct embedding *embedding);

int embedding_fd(const struct embedding *embedding);

/* The descriptor gets readable at `due_ns` on CLOCK_MONOTONIC (0 or past: at once) or sooner. NULL
 * is taken and means that nobody wants to know. */
void embedding_wake(struct embedding *embedding, uint64_t due_ns);

/* ... and not sooner; UINT64_MAX: never. Something that is due now, but was not done in the round
 * that is just over, is due in a millisecond: libevent's clock lags by a few. */
void embedding_rewind(struct embedding *embedding, uint64_t due_ns);
