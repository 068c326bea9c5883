/* Connections to the proxy where the kernel redirects none. */
#pragma once

#include "guard/guard.h"
#include "guard/socket.h"

/* Connects the copy of a TCP socket that has been nowhere yet to the proxy, at the address that is meant, and sends ahead which
 * port is (GUARD_LED). The caller hears what it would if the kernel redirected it. */
struct answer lead_to_proxy(const struct request *request, int copy, const struct address *address);
