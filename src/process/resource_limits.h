/* Resource limits of one command: by which mechanism each is kept, and which one was hit.
 *
 *     resource_limits_open()      what holds: the sandbox's limits, over them what is asked
 *     resource_limits_apply()     by the launch, as its limiter
 *     resource_limits_report()    when the command has ended
 *     resource_limits_close()
 *
 *     memory          a cgroup: all of the command's processes; else RLIMIT_DATA: each by itself
 *     pids            a cgroup, or RLIMIT_NPROC or, for root, the pid namespace, where the
 *                     kernel counts the command's alone; else RLIMIT_NPROC counts all of the user's,
 *                     and none of root's
 *     the others      rlimits, which hold for each process
 *
 * A default is only kept where it counts the command's alone. */
#pragma once

#include "base/err.h"
#include "policy/limit.h"
#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stdint.h>

struct cgroup;
struct process_end;
struct strv;

enum limit_mechanism { LIMIT_UNSET, LIMIT_BY_RLIMIT, LIMIT_BY_CGROUP, LIMIT_BY_PID_NAMESPACE };

/* "none", "rlimit", "cgroup", "pid-namespace" */
const char *limit_mechanism_name(enum limit_mechanism mechanism);

/* Limits in force for one command. */
struct resource_limits_scope {
    struct resource_limits asked;
    bool without_cgroup; /* none is wanted: for tests */
    enum limit_mechanism by[LIMIT_COUNT];
    enum process_counter counter; /* as the launch said */
    struct cgroup *cgroup;        /* owned; NULL without one */
    struct err no_cgroup;         /* why, when one was wanted */
};

/* Nothing is done yet. */
void resource_limits_open(const struct resource_limits *of_sandbox,
                          const struct resource_limits *asked, struct resource_limits_scope *ret);

/* A launch_limiter; `data` is the scope. A launch that is tried again calls it again. */
void resource_limits_apply(void *data, pid_t launcher, enum process_counter counter,
                           struct launch_limits *ret);

enum limit_hit { LIMIT_NOT_HIT, LIMIT_HIT, LIMIT_HIT_UNKNOWN /* the kernel does not tell */ };

/* What is known after the command ended. */
struct resource_limits_report {
    enum limit_mechanism by[LIMIT_COUNT];
    enum limit_hit hit[LIMIT_COUNT];
    uint64_t memory_peak; /* bytes, of the whole tree; 0 when not known (no cgroup) */
    uint64_t pids_peak;   /* 0 when not known */
};

/* Reads what the kernel counted, before resource_limits_close(). */
void resource_limits_report(const struct resource_limits_scope *scope,
                            const struct process_end *end, struct resource_limits_report *ret);

/* A line for each limit that somebody asked for and that does not hold as it is meant, with what to
 * do about it; once it was applied. */
void resource_limits_warn(const struct resource_limits_scope *scope, struct strv *ret);

/* What to type for a cgroup, "systemd-run ... cordon run"; NULL where that is not there. */
const char *resource_limits_command(void);

/* Kills what is left in the cgroup and removes it. */
void resource_limits_close(struct resource_limits_scope *scope);
