/* The options of `cordon log`, which both `cordon` (for help and completions) and the program
 * cordon-log (which does the work) read. */
#pragma once

#include "cli/options.h"

#include <stdbool.h>
#include <stdint.h>

enum log_flag {
    LOG_JSON = 1,
    LOG_DENIED = 2,
    LOG_FOLLOW = 4,
    LOG_ANEW = 8,
};

struct log_options {
    unsigned flags;      /* of enum log_flag */
    uint64_t since_ns;   /* wall clock; 0: all */
    const char *session; /* the beginning of its id; NULL: all */
    uint64_t count;      /* the last ones only; 0: all */
};

extern const struct option_group log_option_groups[];
