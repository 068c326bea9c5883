/* What all commands of the proxy share. */
#pragma once

#include "proxy/deadline.h"
#include "proxy/hosts.h"
#include "proxy/search.h"
#include "proxy/upstream.h"

#include <stdint.h>

struct loop;
struct loop_resolver;

struct proxy {
    struct loop *loop;
    struct loop_resolver *resolver;
    struct hosts hosts;
    struct upstreams upstreams;
    char own_name[NET_HOST_SIZE]; /* of the machine */
    const char *resolv_conf;
    uint64_t resolv_conf_mark; /* of the file as it was read */
    struct search search;      /* of that file */
    struct list commands;
    struct list enders; /* of ender.h */
    /* of connections (connection.h) */
    struct deadline_queue connecting, trying, first_bytes, explicit_head, closing, idle;
    struct deadline_queue dns_streams;
    struct deadline_queue visitors; /* of published ports, until they are connected */
};

/* Reads resolv.conf again when it has changed. */
void proxy_refresh_resolver(struct proxy *proxy);

/* The program may end with its last command. */
void proxy_command_ended(struct proxy *proxy);
