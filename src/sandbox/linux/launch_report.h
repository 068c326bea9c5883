/* The launcher's messages, as they come. */
#pragma once

#include "sandbox/launcher/plan_format.h"
#include "sandbox/sandbox.h"

#include <sys/types.h>

/* The next message, without waiting: its length, as of recv(2) with `flags`. */
ssize_t launch_receive(const struct launch *launch, struct plan_message *ret, int flags);
