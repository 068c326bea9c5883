/* cordon-tls (src/tls), as the proxy has TLS ended by it: what is encrypted goes there, and comes back in plain.
 *
 *     ender_join()      a command has one; commands of one host have the same
 *     ender_order()     of one socket; its answer comes later
 *     ender_leave() */
#pragma once

#include "base/list.h"
#include "tls/tls_format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ender;
struct proxy;

struct ender *ender_join(struct proxy *proxy, int control); /* takes it; NULL on failure */
void ender_leave(struct ender *ender);                      /* NULL is fine */

/* One who waits for an answer. */
struct ender_waiter {
    struct list in_ender;
    uint64_t id;                                                     /* 0: it does not wait */
    void (*on_answer)(struct ender_waiter *waiter, const char *why); /* NULL: TLS is spoken */
};

struct ender_socket {
    enum tls_order_kind kind;
    const char *name;
    int fd;           /* taken */
    const char *read; /* what was read of it already */
    size_t read_len;
};

/* The plain end of it; -1: it is not there any more. Calls nothing back. */
int ender_order(struct ender *ender, const struct ender_socket *socket,
                struct ender_waiter *waiter);

/* Does not wait any more. */
void ender_forget(struct ender_waiter *waiter);
