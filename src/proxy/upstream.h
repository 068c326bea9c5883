/* The proxy that the host itself goes through, as its environment names it: http_proxy, https_proxy, all_proxy, in upper case
 * too, and no_proxy for what is reached without it. Plain HTTP proxies alone. */
#pragma once

#include "policy/network_policy.h"

#include <stdbool.h>
#include <stdint.h>

struct upstream {
    struct net_host host;
    uint16_t port;
    char *authorization; /* value of Proxy-Authorization; NULL: none */
};

struct upstreams {
    struct upstream http, other; /* port 0: none */
    const char *without;         /* no_proxy; borrowed of the environment */
};

void upstreams_read(struct upstreams *ret);
void upstreams_done(struct upstreams *upstreams);

/* NULL: it is reached directly. What is not of the public internet always is. `port` 0: for any port. */
const struct upstream *upstream_for(const struct upstreams *upstreams,
                                    const struct network_policy *policy,
                                    const struct net_host *host, uint16_t port,
                                    enum network_protocol protocol);
