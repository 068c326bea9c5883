/* A network of the command's own that leads to the proxy and nowhere else: set up, and served from outside by
 * what is sent there. */
#pragma once

#include "base/err.h"

#include <stdint.h>

/* Routes, listeners and redirections in the new network, of which the loopback device is up. `ports`: those of the host's
 * loopback that are let in, "5432,6379", or ""; PLAN_NO_REDIRECT. The listeners wait to be sent. `ret_op` is PLAN_REDIRECT when
 * that is what failed. */
int network_lead(const char *ports, uint32_t *ret_op, struct err *err);

/* Sends the listeners over the command's channel to the proxy, and closes them here. One that has died is no failure: it
 * lets nothing out. */
int network_hand_over(int channel, struct err *err);
