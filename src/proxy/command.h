/* One sandboxed command, as the proxy knows it: what it may reach, its listeners, and all that it has open. The end of
 * its channel is its end. */
#pragma once

#include "policy/network_policy.h"
#include "proxy/dns_server.h"
#include "proxy/facts.h"
#include "proxy/names.h"
#include "proxy/published.h"
#include "proxy/question.h"

#include <stdbool.h>

struct ender;
struct loop_timer;
struct loop_watch;
struct proxy;

struct command {
    struct proxy *proxy;
    struct list in_commands;
    int channel;
    struct loop_watch *channel_watch;
    bool asks, traces;
    bool is_led; /* its connections say first which port they are for */
    struct network_policy policy;
    struct ender *ender; /* of TLS; NULL: there is none */
    struct facts facts;
    struct questions questions;
    struct names names;
    struct dns_server dns;
    struct way_in way_in;
    int listener; /* -1: not there yet */
    struct loop_watch *listener_watch;
    struct loop_timer *accept_again; /* runs while there are no descriptors */
    struct list connections;         /* of connection.in_command */
    unsigned connections_len;
};

/* What somebody wants to reach. */
struct target {
    struct net_host host;
    uint16_t port;
    enum network_protocol protocol;
    uint16_t local_port;      /* from which the program connected */
    struct net_address meant; /* to which it did; zero: not known */
};

/* Takes the channel and `tls`, which may be -1, and reads the policy, which it closes. NULL: something is wrong with
 * them. */
struct command *command_new(struct proxy *proxy, int channel, int policy, int tls, unsigned flags);
void command_free(struct command *command);

/* The decision of the policy; what it would ask is NETWORK_DENY when nobody answers, or somebody has said no. `method`
 * may be NULL. */
void command_decide(const struct command *command, const struct target *target, const char *method,
                    struct network_decision *ret);
