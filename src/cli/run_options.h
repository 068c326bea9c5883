/* The options of `cordon run`, which `cordon connect run` has, too: what they mean there is in
 * connect_program.c. */
#pragma once

#include "cli/options.h"
#include "cli/run_layer.h"
#include "cli/settings.h"
#include "policy/limit.h"

#include <stddef.h>
#include <stdint.h>

enum run_terminal {
    RUN_TERMINAL_AUTO, /* when stdin, stdout and stderr are one */
    RUN_TERMINAL_YES,
    RUN_TERMINAL_NO,
};

enum run_flag { RUN_JSON = 1, RUN_QUIET = 2, RUN_NO_AUDIT = 4 };

enum run_input { RUN_INPUT_PIPE, RUN_INPUT_NULL };

struct run_options {
    struct policy_options policy;
    enum run_terminal terminal;
    enum run_input input; /* --stdin */
    unsigned flags;       /* of enum run_flag */
    uint64_t timeout_ns;
    uint64_t kill_after_ns;
    uint64_t max_output;
    struct resource_limits limits;
    struct layer_options_given layer;
    const char *trace_to;         /* a file for the timeline; NULL: none */
    const char *approval_hook;    /* NULL: none */
    uint64_t approval_timeout_ns; /* 0: none */
};

/* What is meant when nothing is given. */
void run_options_init(struct run_options *options);
void run_options_done(struct run_options *options);

/* Groups for a command whose struct has a struct run_options at `at`. */
#define RUN_OPTION_GROUPS(at)                                                                      \
    {"Permissions", policy_permission_options, (at) + offsetof(struct run_options, policy)},       \
        {"Environment", policy_environment_options, (at) + offsetof(struct run_options, policy)},  \
        {"Change layers", run_layer_options, (at) + offsetof(struct run_options, layer)},          \
        {"Approval", run_approval_options, (at)}, {"Limits", run_limit_options, (at)},             \
        {"Watching", run_trace_options, (at)},                                                     \
    {                                                                                              \
        "Input and output", run_stream_options, (at)                                               \
    }

extern const struct option run_approval_options[];
extern const struct option run_limit_options[];
extern const struct option run_trace_options[];
extern const struct option run_stream_options[];
