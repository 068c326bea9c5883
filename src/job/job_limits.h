/* What a job is held to, besides its sandbox: resource limits; and what it was refused.
 * Internal to job.h, which documents the parts. */
#pragma once

#include "denial/denial.h"
#include "process/resource_limits.h"

struct output;

struct job_limits {
    struct resource_limits_scope limits;
    struct resource_limits_report report; /* complete once the command has ended */
    const struct access_map *access;      /* borrowed; NULL: nothing is refused by the sandbox */
};

/* `limits` may be NULL: none. The rlimits and the cgroup of the scope are for the launch. */
void job_limits_open(struct job_limits *bounds, const struct resource_limits *limits,
                     const char *cgroup_base, const struct access_map *access);

/* The command has ended: reads what the kernel counted, and lets the cgroup go. */
void job_limits_end(struct job_limits *bounds, const struct process_end *end);
void job_limits_done(struct job_limits *bounds);

struct job_limits_denial {
    const struct process_end *end;
    const char *program; /* what could not be executed, if that is how it ended */
    const char *cwd;
    struct output *output;
};

/* Looks for denials in what is retained of the output. Appends to `ret`. */
void job_limits_denials(const struct job_limits *bounds, const struct job_limits_denial *of,
                        struct denials *ret);
