/* What sandbox.c and launch.c share: the inside of a sandbox. */
#pragma once

#include "sandbox/linux/host.h"
#include "sandbox/linux/plan.h"
#include "sandbox/linux/spawn.h"
#include "sandbox/linux/standin.h"
#include "sandbox/sandbox.h"

/* An init whose command is over, and that is about to end or has ended. */
struct ending {
    struct ending *next;
    pid_t pid;
    struct netns *netns;
};

struct sandbox {
    enum sandbox_mode mode;
    struct access_map access;
    struct plan_options options;
    struct host host;
    struct plan *plan;
    struct layer_report layers[LAYER_COUNT];
    char *launcher;
    bool keep_warm;
    struct standins *warm; /* held until the end when they are kept warm */
    struct ending *endings;
    struct netns *spare; /* network namespaces whose last command is gone */
    size_t spare_len;
};

/* A set-up failed at `op`. true when that shows that this host lacks a layer: then a weaker plan is
 * ready, or `ret_status` is -1 with `err` because mode or profile allow none. */
bool sandbox_step_down(struct sandbox *sandbox, enum plan_op op, const struct err *failure,
                       int *ret_status, struct err *err);

/* A sandbox with this plan stood. */
void sandbox_set_proven(struct sandbox *sandbox);

/* Reaps the inits that have ended; with `flags` 0 instead of WNOHANG it waits for all. */
void sandbox_reap(struct sandbox *sandbox, int flags);

/* The network namespace of a sandbox whose last process is gone may serve the next command. */
void sandbox_give_network(struct sandbox *sandbox, struct netns *netns);

/* Waits for the launcher's first message and looks at it without taking it. */
bool launch_peek(const struct launch *launch, struct plan_message *ret);
