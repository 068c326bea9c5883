/* The proxy (src/proxy) as its host sees it, as guard_link.h is for the guard: one process for all sandboxes of
 * this one whose network leads to it, and a channel for each command, over which facts and questions come. Most commands
 * connect to nothing: it is started when the first one does.
 *
 *     proxy_channel_new()      two ends: a copy of the one goes to the launcher, which sends listeners
 *     proxy_channel_next()     when somebody connects to one of them: to the proxy with all; and what it tells
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

struct proxy_start {
    struct companion_start start; /* of the program proxy_link_program() */
    int policy;                   /* sealed memory with the JSON of policy/network_policy.h */
    bool ends_tls;                /* it gets the control socket of cordon-tls (tls_link.h) */
    uint32_t flags;               /* enum proxy_hello_flag */
};

struct proxy_channel;

/* What is in `start` is borrowed for as long as the channel. NULL on failure. */
struct proxy_channel *proxy_channel_new(const struct proxy_start *start, struct err *err);
void proxy_channel_free(struct proxy_channel *channel); /* NULL is fine */

/* The same for what has no listeners inside: it is handed over at once. Nothing is borrowed. */
struct proxy_channel *proxy_channel_open(const struct proxy_start *start, struct err *err);

/* Our end, of which the launcher gets a copy where there are listeners. */
int proxy_channel_end(const struct proxy_channel *channel);

/* Readable when proxy_channel_next() has something to do. */
int proxy_channel_fd(const struct proxy_channel *channel);

/* The next fact, with its strings terminated; false when there is none for now. A proxy that cannot be started is told as
 * one, and nothing leaves. */
bool proxy_channel_next(struct proxy_channel *channel, struct proxy_fact *ret);

/* The answer to a question. Nothing happens when the proxy is gone. */
void proxy_channel_answer(const struct proxy_channel *channel, uint64_t id, bool is_yes);

/* The command is over, and with it all that it has open. What was counted and not told is waited for, if there
 * can be such (a second at most). */
void proxy_channel_finish(struct proxy_channel *channel);
