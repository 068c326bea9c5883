/* What a session is held to, besides its sandbox: resource limits; and what it was refused.
 * Internal to session.h, which documents the parts. */
#pragma once

#include "denial/denial.h"
#include "process/resource_limits.h"

struct output;

struct bounds {
    struct limits_scope limits;
    struct limits_report report;     /* complete once the command has ended */
    const struct access_map *access; /* borrowed; NULL: nothing is refused by the sandbox */
};

/* `limits` may be NULL: none. The rlimits and the cgroup of the scope are for the launch. */
void bounds_open(struct bounds *bounds, const struct limits *limits, const char *cgroup_base,
                 const struct access_map *access);

/* The command has ended: reads what the kernel counted, and lets the cgroup go. */
void bounds_end(struct bounds *bounds, const struct process_end *end);
void bounds_done(struct bounds *bounds);

struct bounds_denial {
    const struct process_end *end;
    const char *program; /* what could not be executed, if that is how it ended */
    const char *cwd;
    struct output *output;
};

/* Looks for denials in what is retained of the output. Appends to `ret`. */
void bounds_denials(const struct bounds *bounds, const struct bounds_denial *of,
                    struct denials *ret);
