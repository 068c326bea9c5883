/* What guard and proxy say of a launch, as one stream of facts. */
#pragma once

#include "sandbox/linux/guard_link.h"
#include "sandbox/linux/proxy_link.h"
#include "sandbox/sandbox.h"

/* From now on facts come from these two, which become the launch's; NULL for one that there is not. */
int launch_facts_open(struct launch *launch, struct guard_channel *guard,
                      struct proxy_channel *proxy, struct err *err);

/* NULL: the network does not lead to the proxy. */
struct proxy_channel *launch_facts_proxy(const struct launch *launch);

/* The command has ended: all that was told of it is taken in. */
void launch_facts_finish(struct launch *launch);

void launch_facts_close(struct launch *launch);
