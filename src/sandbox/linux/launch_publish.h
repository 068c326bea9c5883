/* Ports of a command that are published: the proxy serves who connects outside, with sockets that the launcher makes in the
 * command's network. Nothing of this is there before the first one is. */
#pragma once

#include "base/err.h"
#include "proxy/proxy_format.h"
#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stdint.h>

struct way_in_start {
    const char *launcher;  /* beside which the proxy's program is */
    bool has_network;      /* of its own */
    bool dies_with_thread; /* as in struct companion_start */
};

/* launch_publish(), of a sandbox that has joined the proxy's users. */
int way_in_publish(struct launch *launch, const struct way_in_start *how, uint16_t port,
                   int listener, struct err *err);

/* The next that the proxy has to tell of it, as proxy_channel_next(); false also where nothing is published. */
bool launch_publish_next(const struct launch *launch, struct proxy_fact *ret);

/* The command is over; returns when its ports are free again. */
void launch_unpublish(struct launch *launch);
