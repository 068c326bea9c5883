/* The proxy (src/proxy) as its host sees it, as guard_link.h is for the guard: one process for all sandboxes of
 * this one whose network leads to it, and a channel for each command, over which facts and questions come.
 *
 *     proxy_channel_new()      two ends: one stays here, a copy of it goes to the launcher
 *     proxy_channel_attach()   the other end, and the policy, go to the proxy
 *     proxy_channel_next()     what it tells
 *     proxy_channel_free()     the command is over */
#pragma once

#include "base/err.h"
#include "policy/network_policy.h"
#include "proxy/proxy_format.h"
#include "sandbox/linux/companion.h"

#include <stdbool.h>

/* Where the proxy's program is, as companion_program() finds it; NULL when there is none. */
char *proxy_link_program(const char *launcher);

/* What it is told of a sandbox: the policy as sealed memory, a descriptor; -1 on failure. */
int proxy_link_policy(const struct network_policy *policy, struct err *err);

/* The ports of the host's loopback that the policy lets in, as the launcher takes them. The caller frees. */
char *proxy_link_ports(const struct network_policy *policy);

/* A sandbox is there that needs the proxy; it is no more. With the last one the proxy ends; proxy_link_reap() waits
 * for that (a moment at most). */
void proxy_link_join(void);
void proxy_link_leave(void);
void proxy_link_reap(void);

struct proxy_channel;

struct proxy_channel *proxy_channel_new(struct err *err); /* NULL on failure */
void proxy_channel_free(struct proxy_channel *channel);   /* NULL is fine */

/* Readable when proxy_channel_next() may have something, or the proxy has let go of the command. */
int proxy_channel_fd(const struct proxy_channel *channel);

struct proxy_start {
    struct companion_start start; /* of the program proxy_link_program() */
    int policy;                   /* sealed memory with the JSON of policy/network_policy.h */
    uint32_t flags;               /* enum proxy_hello_flag */
};

/* Hands the command over to the proxy, which is started if there is none or the last has died. Nobody waits for
 * it. */
int proxy_channel_attach(struct proxy_channel *channel, const struct proxy_start *start,
                         struct err *err);

/* The next fact, with its strings terminated; false when there is none for now. */
bool proxy_channel_next(struct proxy_channel *channel, struct proxy_fact *ret);

/* Nothing follows: the proxy has let go of the command, or has died. */
bool proxy_channel_has_ended(const struct proxy_channel *channel);

/* The answer to a question. Nothing happens when the proxy is gone. */
void proxy_channel_answer(const struct proxy_channel *channel, uint64_t id, bool is_yes);

/* The command is over, and with it all that it has open. What was counted and not told is waited for, if there
 * can be such (a second at most). */
void proxy_channel_finish(struct proxy_channel *channel);
