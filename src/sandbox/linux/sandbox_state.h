/* What sandbox.c and launch.c share: the inside of a sandbox. */
#pragma once

#include "sandbox/linux/host.h"
#include "sandbox/linux/launcher_pool.h"
#include "sandbox/linux/placeholder.h"
#include "sandbox/linux/plan.h"
#include "sandbox/sandbox.h"

struct sandbox {
    enum sandbox_mode mode;
    struct access_map access;
    struct plan_options options;
    struct host host;
    struct plan *plan;
    struct layer_report layers[LAYER_COUNT];
    char *launcher;
    bool keep_warm;
    bool dies_with_thread;
    struct standins *warm; /* held until the end when they are kept warm */
    struct init_pool inits;
    unsigned launches; /* that are open */
    void (*on_idle)(void *data, struct sandbox *sandbox);
    void *data; /* for on_idle */
};

/* A set-up failed at `op`. true when that shows that this host lacks a layer: then a weaker plan is
 * ready, or `ret_status` is -1 with `err` because mode or profile allow none. */
bool sandbox_step_down(struct sandbox *sandbox, enum plan_op op, const struct err *failure,
                       int *ret_status, struct err *err);

/* A sandbox with this plan stood. */
void sandbox_set_proven(struct sandbox *sandbox);

/* Waits for the launcher's first message and looks at it without taking it. */
bool launch_peek(const struct launch *launch, struct plan_message *ret);
