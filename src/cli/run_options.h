/* The options of `cordon run`. */
#pragma once

#include "cli/policy_options.h"
#include "process/resource_limits.h"

#include <stddef.h>
#include <stdint.h>

enum run_terminal {
    RUN_TERMINAL_AUTO, /* when stdin, stdout and stderr are one */
    RUN_TERMINAL_YES,
    RUN_TERMINAL_NO,
};

enum run_flag {
    RUN_JSON = 1,
    RUN_QUIET = 2,
    RUN_NO_STDIN = 4,
    RUN_NO_AUDIT = 8,
};

struct run_options {
    struct policy_options policy; /* first: its tables take it from there */
    enum run_terminal terminal;
    unsigned flags; /* of enum run_flag */
    uint64_t timeout_ns;
    uint64_t kill_after_ns;
    size_t max_output;
    struct limits limits;
    const char *approval_hook;    /* NULL: none */
    uint64_t approval_timeout_ns; /* 0: none */
};

extern const struct option_group run_option_groups[];

void run_options_init(struct run_options *options);
void run_options_done(struct run_options *options);
