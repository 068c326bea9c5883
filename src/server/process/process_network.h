/* The managed network of process/start: what its call says of it, read; and the client as the one who is asked about
 * hosts. */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "policy/network_policy.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct job_asker;
struct process_start_params;
struct rpc_process;

/* Zeroed: the call says nothing of it. */
struct process_network {
    bool is_given;
    bool has_proxy; /* networkProxy: programs are told of a proxy, and the client of decisions */
    bool has_socks;
    uint64_t
        review_ns; /* what no rule is about goes to network/policyRequest, for this long; 0: to nobody */
    struct network_policy policy;
};

void process_network_done(struct process_network *network);

/* What has to be kept and cannot be is an error; so is what nothing here understands. */
int process_network_read(const struct process_start_params *params, struct process_network *ret,
                         struct err *err);

/* Sends network/policyRequest and network/policyDecision; what is no matter of the network goes on to `inner`, which it takes
 * over (may be NULL). */
struct job_asker *process_network_asker(struct rpc_process *process, struct job_asker *inner);
