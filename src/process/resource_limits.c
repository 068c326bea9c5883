/* See resource_limits.h. A cgroup is made only when a limit asks for one that it keeps better:
 * making one costs more than many a command takes. Where the cgroup keeps a limit the rlimit is not
 * set, too: RLIMIT_AS counts address space, which runtimes reserve by the gigabyte without using
 * it, and RLIMIT_NPROC counts every process of the user. */
#include "process/resource_limits.h"

#include "base/auto.h"
#include "base/clock.h"
#include "process/cgroup.h"
#include "process/process.h"

#include <signal.h>

const char *resource_limit_name(enum resource_limit limit)
{
    static const char *const names[LIMIT_COUNT] = {
        [LIMIT_MEMORY] = "memory",
        [LIMIT_CPU_TIME] = "cpu-time",
        [LIMIT_PIDS] = "pids",
        [LIMIT_FILE_SIZE] = "file-size",
    };

    return names[limit];
}

const char *limit_mechanism_name(enum limit_mechanism mechanism)
{
    static const char *const names[] = {
        [LIMIT_UNSET] = "none",
        [LIMIT_BY_RLIMIT] = "rlimit",
        [LIMIT_BY_CGROUP] = "cgroup",
    };

    return names[mechanism];
}

static void limits_open_cgroup(struct resource_limits_scope *scope, const char *base)
{
    AUTO_FREE char *found = NULL;
    struct err ignored; /* without a cgroup the rlimits do; `by` shows it */

    if (!base)
        base = found = cgroup_find_base(NULL, &ignored);
    if (!base || !*base)
        return;
    scope->cgroup = cgroup_open(base, &ignored);
    if (!scope->cgroup)
        return;
    if (scope->asked.memory && cgroup_set_memory(scope->cgroup, scope->asked.memory, &ignored) == 0)
        scope->by[LIMIT_MEMORY] = LIMIT_BY_CGROUP;
    if (scope->asked.pids && cgroup_set_pids(scope->cgroup, scope->asked.pids, &ignored) == 0)
        scope->by[LIMIT_PIDS] = LIMIT_BY_CGROUP;
    if (!scope->by[LIMIT_MEMORY] && !scope->by[LIMIT_PIDS])
        resource_limits_close(scope);
}

static uint64_t limits_rlimit(struct resource_limits_scope *scope, enum resource_limit limit,
                              uint64_t value)
{
    if (!value || scope->by[limit] == LIMIT_BY_CGROUP)
        return 0;
    scope->by[limit] = LIMIT_BY_RLIMIT;
    return value;
}

void resource_limits_open(const struct resource_limits *limits, const char *base,
                          struct resource_limits_scope *ret)
{
    uint64_t cpu_s =
        limits->cpu_time_ns / CLOCK_NS_PER_S + (limits->cpu_time_ns % CLOCK_NS_PER_S != 0);

    *ret = (struct resource_limits_scope){.asked = *limits};
    if (limits->memory || limits->pids)
        limits_open_cgroup(ret, base);
    ret->rlimits = (struct sandbox_limits){
        .memory = limits_rlimit(ret, LIMIT_MEMORY, limits->memory),
        .cpu_time = limits_rlimit(ret, LIMIT_CPU_TIME, cpu_s),
        .processes = limits_rlimit(ret, LIMIT_PIDS, limits->pids),
        .file_size = limits_rlimit(ret, LIMIT_FILE_SIZE, limits->file_size),
    };
}

int resource_limits_cgroup_fd(const struct resource_limits_scope *scope)
{
    return scope->cgroup ? cgroup_fd(scope->cgroup) : -1;
}

/* The signal that ended the command, also when a shell in between made 128 + n of it. */
static bool ended_by(const struct process_end *end, int signal)
{
    return (end->how == PROCESS_SIGNALED && end->signal == signal) ||
           (end->how == PROCESS_EXITED && end->code == 128 + signal);
}

/* The kernel sends SIGXCPU at the soft limit and SIGKILL at the hard one (getrlimit(2)); a SIGKILL
 * from elsewhere comes with less CPU time used. It counts in ticks, rusage does not: they differ by
 * some hundredths. */
static bool hit_cpu_time(const struct resource_limits_scope *scope, const struct process_end *end)
{
    const struct timeval *user = &end->usage.ru_utime;
    const struct timeval *sys = &end->usage.ru_stime;
    uint64_t used_ns = (uint64_t)(user->tv_sec + sys->tv_sec) * CLOCK_NS_PER_S +
                       (uint64_t)(user->tv_usec + sys->tv_usec) * 1000;

    return scope->by[LIMIT_CPU_TIME] &&
           (ended_by(end, SIGXCPU) ||
            (ended_by(end, SIGKILL) && end->usage_known &&
             used_ns / 3 * 4 >= scope->rlimits.cpu_time * CLOCK_NS_PER_S));
}

void resource_limits_report(const struct resource_limits_scope *scope,
                            const struct process_end *end, struct resource_limits_report *ret)
{
    struct cgroup_stat stat = {0};

    *ret = (struct resource_limits_report){0};
    for (int i = 0; i < LIMIT_COUNT; i++)
        ret->by[i] = scope->by[i];
    ret->hit[LIMIT_CPU_TIME] = hit_cpu_time(scope, end);
    ret->hit[LIMIT_FILE_SIZE] = scope->by[LIMIT_FILE_SIZE] && ended_by(end, SIGXFSZ);
    if (!scope->cgroup)
        return;
    cgroup_stat(scope->cgroup, &stat);
    ret->memory_peak = stat.memory_peak;
    ret->pids_peak = stat.pids_peak;
    ret->hit[LIMIT_MEMORY] = scope->by[LIMIT_MEMORY] == LIMIT_BY_CGROUP && stat.oom_kills;
    ret->hit[LIMIT_PIDS] = scope->by[LIMIT_PIDS] == LIMIT_BY_CGROUP && stat.pids_refused;
}

void resource_limits_close(struct resource_limits_scope *scope)
{
    cgroup_close(scope->cgroup);
    scope->cgroup = NULL;
}
