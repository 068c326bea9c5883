/* Names of the internet, resolved in the loop: libevent's evdns, whose types stay out of this header. It asks the
 * servers of a resolv.conf(5), for IPv4 and IPv6 addresses at once; it knows nothing of /etc/hosts, search domains and
 * the other services of nsswitch.conf(5). */
#pragma once

#include "base/err.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct loop_resolver;
struct loop_look_up;

enum { LOOP_ADDRESSES_MAX = 32 };

enum loop_found {
    LOOP_FOUND,
    LOOP_NO_SUCH_NAME,
    LOOP_NO_ADDRESS, /* the name is there */
    LOOP_NO_ANSWER,  /* servers that fail, or say nothing */
};

/* `addresses`: at most LOOP_ADDRESSES_MAX, IPv4 first, as ::ffff:a.b.c.d. */
typedef void loop_found_fn(void *data, enum loop_found found, const struct in6_addr *addresses,
                           size_t count);

/* `wait_ns`: how long a look-up may take. NULL on failure. */
struct loop_resolver *loop_resolver_new(struct loop *loop, uint64_t wait_ns, struct err *err);

/* After all its look-ups are over. */
void loop_resolver_free(struct loop_resolver *resolver);

/* Reads the servers (again); what is being looked up goes on with the new ones. */
void loop_resolver_read(struct loop_resolver *resolver, const char *resolv_conf);

/* Calls back once, within its time and never before it has returned, and is gone then; or is cancelled. */
struct loop_look_up *loop_look_up_start(struct loop_resolver *resolver, const char *name,
                                        loop_found_fn *on_found, void *data);
void loop_look_up_cancel(struct loop_look_up *look_up);
