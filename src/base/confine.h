/* What a companion that reads the bytes of strangers (the proxy, cordon-tls) takes from itself before it does. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct confine_options {
    const char *const *folders; /* whose files it may read; NULL-terminated */
    const long *calls;          /* that it may make, beside socket(2) */
    size_t calls_len;           /* CONFINE_CALLS_MAX at most */
    bool has_network;           /* sockets of IPv4 and IPv6 can be made */
};

enum { CONFINE_CALLS_MAX = 128 };

int confine(const struct confine_options *options, struct err *err);
