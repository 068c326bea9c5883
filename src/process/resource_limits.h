/* Resource limits of one command: what was asked, by which mechanism it is kept, which one was hit.
 *
 * Memory and process count are kept by a cgroup v2 of the command's own where one can be made
 * (then they hold for the whole tree), otherwise by rlimits (then for each process, or user); CPU
 * time and file size are rlimits always. The result says which.
 */
#pragma once

#include "base/err.h"
#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stdint.h>

struct cgroup;
struct process_end;

enum resource_limit { LIMIT_MEMORY, LIMIT_CPU_TIME, LIMIT_PIDS, LIMIT_FILE_SIZE, LIMIT_COUNT };

enum limit_mechanism { LIMIT_UNSET, LIMIT_BY_RLIMIT, LIMIT_BY_CGROUP };

/* 0 means no limit. */
struct resource_limits {
    uint64_t memory;      /* bytes */
    uint64_t cpu_time_ns; /* rounded up to whole seconds: RLIMIT_CPU knows no others */
    uint64_t pids;        /* processes and threads */
    uint64_t file_size;   /* bytes of the largest file */
};

/* Limits in force for one command. */
struct resource_limits_scope {
    struct resource_limits asked;
    enum limit_mechanism by[LIMIT_COUNT];
    struct sandbox_limits rlimits; /* to pass to the launch */
    struct cgroup *cgroup;         /* owned; NULL without one */
};

/* What is known after the command ended. */
struct resource_limits_report {
    enum limit_mechanism by[LIMIT_COUNT];
    bool hit[LIMIT_COUNT]; /* known to be hit; false can also mean that it cannot be told */
    uint64_t memory_peak;  /* bytes, of the whole tree; 0 when not known (no cgroup) */
    uint64_t pids_peak;    /* 0 when not known */
};

const char *resource_limit_name(enum resource_limit limit);       /* "memory", "cpu-time", ... */
const char *limit_mechanism_name(enum limit_mechanism mechanism); /* "none", "rlimit", "cgroup" */

/* Makes a cgroup below `base` (NULL: found by cgroup_find_base(), "": none wanted) when a limit
 * needs one; where none can be made rlimits do, which is not an error but visible in `by`. */
void resource_limits_open(const struct resource_limits *limits, const char *base,
                          struct resource_limits_scope *ret);

int resource_limits_cgroup_fd(
    const struct resource_limits_scope *scope); /* for the launch; -1 without one */

/* Reads what the kernel counted, before resource_limits_close(). */
void resource_limits_report(const struct resource_limits_scope *scope,
                            const struct process_end *end, struct resource_limits_report *ret);

/* Kills what is left in the cgroup and removes it. */
void resource_limits_close(struct resource_limits_scope *scope);
