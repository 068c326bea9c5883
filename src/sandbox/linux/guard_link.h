/* The guard (src/guard) as its host sees it: one process for all sandboxes of this one, started with
 * the first command that wants it, and a channel for each command, over which facts come.
 *
 *     guard_channel_new()      two ends: one stays here, a copy of it goes to the launcher
 *     guard_channel_attach()   the other end, and the map, go to the guard
 *     guard_channel_next()     what it tells
 *     guard_channel_free()
 */
#pragma once

#include "base/err.h"
#include "guard/guard_format.h"
#include "sandbox/linux/companion.h"

#include <stdbool.h>

/* Where the guard's program is: beside the launcher, or as base/program.h finds programs. The caller
 * frees. NULL when there is none. */
char *guard_link_program(const char *launcher);

/* A sandbox is there that may need the guard; it is no more. With the last one the guard ends;
 * guard_link_reap() waits for that (a moment at most). */
void guard_link_join(void);
void guard_link_leave(void);
void guard_link_reap(void);

struct guard_channel;

struct guard_channel *guard_channel_new(struct err *err); /* NULL on failure */
void guard_channel_free(struct guard_channel *channel);   /* NULL is fine */

/* Readable when guard_channel_next() may have something. */
int guard_channel_fd(const struct guard_channel *channel);

struct guard_start {
    struct companion_start start; /* of the program guard_link_program() */
    int map;                      /* sealed memory in the guard's format */
    int outside;                  /* root of a layer's mounts; -1 */
    uint32_t flags;               /* enum guard_hello_flag */
};

/* Hands the command over to the guard, which is started if there is none or the last has died. */
int guard_channel_attach(struct guard_channel *channel, const struct guard_start *start,
                         struct err *err);

/* The next fact, of any kind but END; NULL when there is none for now. Its strings are NUL-terminated, four
 * of them; good until the next call. */
const struct guard_fact *guard_channel_next(struct guard_channel *channel);

/* Of the fact that was given out last: its arguments, NULL-terminated, good until the next one. */
const char *const *guard_channel_argv(const struct guard_channel *channel);

/* And the descriptors 0, 1, 2 that came with it, which become the caller's; -1 for those that did
 * not. */
void guard_channel_take_stdio(struct guard_channel *channel, int ret_fds[3]);

/* Orders about the command. Nothing happens when the guard is gone. */
void guard_channel_send(const struct guard_channel *channel, const struct guard_order *order);

/* The command is over: takes in what was told of it. What is counted, what nobody waits for any more, and how
 * processes ended, is told at the end of its last one, for which this waits if there is something (a second at
 * most): not of one that `lingers`, since what it left behind goes on. */
void guard_channel_finish(struct guard_channel *channel, bool lingers);

/* Nothing follows. */
bool guard_channel_has_ended(const struct guard_channel *channel);

/* The guard let go of the command without a word, so it has died. */
bool guard_channel_is_broken(const struct guard_channel *channel);
