/* The names that a command has looked up: each has one address of 198.18.0.0/15 for the command's life, and
 * what it is on the internet, judged.
 *
 * A name that may be asked about has its address before anything is known of it: nothing of what a command asks for
 * leaves the host before somebody said yes. */
#pragma once

#include "base/list.h"
#include "loop/resolve.h"
#include "policy/host.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct command;
struct target;

enum { NAMES_BUCKETS = 256 };

struct name {
    struct command *command;
    struct net_host host;
    unsigned number; /* of its address */
    struct name *next_in_bucket;
    enum loop_found found; /* once `fresh_until_ns` is set */
    struct net_address *addresses;
    size_t addresses_len;
    uint64_t fresh_until_ns;
    bool is_told;                 /* that it was looked up */
    struct loop_look_up *look_up; /* on its way */
    struct list waiting;          /* of name_waiter.in_name */
};

struct names {
    struct name **list; /* by number */
    size_t len, cap;
    struct name *buckets[NAMES_BUCKETS];
    double budget; /* names that may come at once */
    uint64_t budget_ns;
};

struct name_waiter {
    struct list in_name;
    void (*on_resolved)(struct name_waiter *waiter, struct name *name);
};

void names_done(struct names *names);

/* What the name is called with; a new one where there is none. NULL: `*ret_limit` says which limit is hit. */
struct name *names_get(struct command *command, const struct net_host *host,
                       const char **ret_limit);

/* The one that has this address; NULL: none has. */
struct name *names_at(const struct names *names, const struct net_address *address);

/* One of 198.18.0.0/15. */
bool names_is_pool(const struct net_address *address);
void name_address(const struct name *name, unsigned char ret[4]);

/* Calls back when `found` and `addresses` are known and fresh: from the loop, or at once. That it is looked up is told with
 * the port of `asker`. */
void name_resolve(struct name *name, const struct target *asker, struct name_waiter *waiter);
void name_leave(struct name_waiter *waiter);
