/* The host's /etc/hosts: which addresses a name has there, and which names an address. Read again when it has changed. */
#pragma once

#include "base/buf.h"
#include "policy/host.h"

#include <stddef.h>
#include <stdint.h>

struct hosts {
    const char *path; /* borrowed; NULL: there is none */
    struct buf text;
    uint64_t mark; /* of the file as it was read: changes with it */
};

/* Of a file as it is now, to know whether it has changed; 0: it is not there. */
uint64_t hosts_mark(const char *path);

void hosts_init(struct hosts *hosts, const char *path);
void hosts_done(struct hosts *hosts);

/* How many addresses the name (lower case) has, at most `max`. */
size_t hosts_find(struct hosts *hosts, const char *name, struct net_address *ret, size_t max);

/* The name number `index` of the address, as net_host_parse() takes it. False: it has no more. */
bool hosts_name_of(struct hosts *hosts, const struct net_address *address, size_t index,
                   struct net_host *ret);
