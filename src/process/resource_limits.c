/* See resource_limits.h. A cgroup is made only when a limit asks for one that it keeps better:
 * to move a process into one the kernel waits for all others (6 to 17 ms were measured), which is more
 * than many a command takes, and no default is worth. Where the cgroup keeps a limit the rlimit is
 * not set, too.
 *
 * RLIMIT_DATA and not RLIMIT_AS stands in for memory: it counts what a process can write to, and
 * not what Java, node and Go reserve by the gigabyte without using it. */
#include "process/resource_limits.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/strv.h"
#include "process/cgroup.h"
#include "process/process.h"

#include <signal.h>
#include <unistd.h>

const char *limit_mechanism_name(enum limit_mechanism mechanism)
{
    static const char *const names[] = {
        [LIMIT_UNSET] = "none",
        [LIMIT_BY_RLIMIT] = "rlimit",
        [LIMIT_BY_CGROUP] = "cgroup",
        [LIMIT_BY_PID_NAMESPACE] = "pid-namespace",
    };

    return names[mechanism];
}

void resource_limits_open(const struct resource_limits *of_sandbox,
                          const struct resource_limits *asked, struct resource_limits_scope *ret)
{
    *ret = (struct resource_limits_scope){0};
    if (of_sandbox)
        ret->asked = *of_sandbox;
    if (asked)
        resource_limits_overlay(&ret->asked, asked);
}

static bool is_set(const struct resource_limits_scope *scope, enum resource_limit limit)
{
    return scope->asked.of[limit] && scope->asked.of[limit] != LIMIT_NONE;
}

/* The kernel counts the command's processes alone. */
static bool counts_own(const struct resource_limits_scope *scope)
{
    return scope->counter != COUNTER_USER;
}

static bool is_default(const struct resource_limits_scope *scope, enum resource_limit limit)
{
    return scope->asked.defaults & 1u << limit;
}

/* --- the cgroup --- */

/* A folder that keeps something of it, with nobody in it yet. */
static void make_folder(struct resource_limits_scope *scope, const struct cgroup_limits *limits)
{
    AUTO(cgroup_base_done) struct cgroup_base base = {0};

    if (cgroup_base_find(NULL, &base, &scope->no_cgroup))
        return;
    scope->cgroup = cgroup_open(&base, limits, &scope->no_cgroup);
    if (scope->cgroup && cgroup_limit(scope->cgroup, limits, &scope->no_cgroup))
        resource_limits_close(scope);
}

static int enter_folder(struct resource_limits_scope *scope, pid_t launcher)
{
    if (!scope->cgroup || cgroup_enter(scope->cgroup, launcher, &scope->no_cgroup) == 0)
        return 0;
    resource_limits_close(scope);
    return -1;
}

static bool lacks(const struct resource_limits_scope *scope, const struct cgroup_limits *limits,
                  enum cgroup_controller controller)
{
    return limits->of[controller] && !(scope->cgroup && cgroup_keeps(scope->cgroup, controller));
}

/* Something that only a cgroup can do. */
static bool lacks_any(const struct resource_limits_scope *scope, const struct cgroup_limits *limits)
{
    return lacks(scope, limits, CGROUP_MEMORY) ||
           (!counts_own(scope) && lacks(scope, limits, CGROUP_PIDS));
}

/* In the place of a folder that keeps less, in which the launcher must not be yet: what is in it is killed. */
static void open_scope(struct resource_limits_scope *scope, const struct cgroup_limits *limits,
                       pid_t launcher)
{
    struct cgroup *cgroup =
        lacks_any(scope, limits) ? cgroup_open_scope(launcher, limits, &scope->no_cgroup) : NULL;

    if (!cgroup) {
        enter_folder(scope, launcher);
        return;
    }
    resource_limits_close(scope);
    scope->cgroup = cgroup;
}

static void open_cgroup(struct resource_limits_scope *scope, pid_t launcher)
{
    bool wants_pids = is_set(scope, LIMIT_PIDS) && !is_default(scope, LIMIT_PIDS);
    struct cgroup_limits limits = {
        .of = {[CGROUP_MEMORY] = is_set(scope, LIMIT_MEMORY) ? scope->asked.of[LIMIT_MEMORY] : 0,
               [CGROUP_PIDS] = wants_pids ? scope->asked.of[LIMIT_PIDS] : 0},
    };

    if (!limits.of[CGROUP_MEMORY] && !limits.of[CGROUP_PIDS])
        return;
    if (scope->without_cgroup) {
        err_set(&scope->no_cgroup, ERR_UNSUPPORTED, "none was wanted");
        return;
    }
    make_folder(scope, &limits);
    if (lacks_any(scope, &limits) || enter_folder(scope, launcher))
        open_scope(scope, &limits, launcher);
    if (!scope->cgroup)
        return;
    if (cgroup_keeps(scope->cgroup, CGROUP_MEMORY))
        scope->by[LIMIT_MEMORY] = LIMIT_BY_CGROUP;
    if (cgroup_keeps(scope->cgroup, CGROUP_PIDS))
        scope->by[LIMIT_PIDS] = LIMIT_BY_CGROUP;
}

/* --- rlimits --- */

static uint64_t rlimit(struct resource_limits_scope *scope, enum resource_limit limit)
{
    if (!is_set(scope, limit) || scope->by[limit] == LIMIT_BY_CGROUP)
        return 0;
    scope->by[limit] = LIMIT_BY_RLIMIT;
    return scope->asked.of[limit];
}

/* What counts other processes, too, may be asked for, but is nobody's default; and RLIMIT_NPROC
 * does not count root at all (fork(2)). */
static uint64_t process_limit(struct resource_limits_scope *scope)
{
    bool is_of_use = counts_own(scope) || (!is_default(scope, LIMIT_PIDS) && geteuid() != 0);
    uint64_t value = is_of_use ? rlimit(scope, LIMIT_PIDS) : 0;

    if (value && scope->counter == COUNTER_PID_NAMESPACE)
        scope->by[LIMIT_PIDS] = LIMIT_BY_PID_NAMESPACE;
    return value;
}

/* RLIMIT_CPU knows no others. */
static uint64_t cpu_seconds(uint64_t ns)
{
    return ns / CLOCK_NS_PER_S + (ns % CLOCK_NS_PER_S != 0);
}

void resource_limits_apply(void *data, pid_t launcher, enum process_counter counter,
                           struct launch_limits *ret)
{
    struct resource_limits_scope *scope = data;
    resource_limits_close(scope); /* of a launch before this one */
    for (int i = 0; i < LIMIT_COUNT; i++)
        scope->by[i] = LIMIT_UNSET;
    scope->counter = counter;
    open_cgroup(scope, launcher);
    *ret = (struct launch_limits){
        .data = rlimit(scope, LIMIT_MEMORY),
        .address_space = rlimit(scope, LIMIT_ADDRESS_SPACE),
        .cpu_time = cpu_seconds(rlimit(scope, LIMIT_CPU_TIME)),
        .processes = process_limit(scope),
        .file_size = rlimit(scope, LIMIT_FILE_SIZE),
        .files = rlimit(scope, LIMIT_FILES),
    };
}

/* --- what is said of them --- */

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

    return ended_by(end, SIGXCPU) ||
           (ended_by(end, SIGKILL) && end->usage_known &&
            used_ns / 3 * 4 >= cpu_seconds(scope->asked.of[LIMIT_CPU_TIME]) * CLOCK_NS_PER_S);
}

/* Of what only makes a system call fail, in whichever process, nobody tells us. */
static enum limit_hit hit_of(const struct resource_limits_scope *scope, enum resource_limit limit,
                             const struct process_end *end, const struct cgroup_stat *stat)
{
    bool is_hit = false;

    if (!scope->by[limit])
        return LIMIT_NOT_HIT;
    if (scope->by[limit] == LIMIT_BY_CGROUP)
        is_hit = limit == LIMIT_MEMORY ? stat->oom_kills : stat->pids_refused;
    else if (limit == LIMIT_CPU_TIME)
        is_hit = hit_cpu_time(scope, end);
    else if (limit == LIMIT_FILE_SIZE)
        is_hit = ended_by(end, SIGXFSZ);
    else
        return LIMIT_HIT_UNKNOWN;
    return is_hit ? LIMIT_HIT : LIMIT_NOT_HIT;
}

void resource_limits_report(const struct resource_limits_scope *scope,
                            const struct process_end *end, struct resource_limits_report *ret)
{
    struct cgroup_stat stat = {0};

    *ret = (struct resource_limits_report){0};
    if (scope->cgroup)
        cgroup_stat(scope->cgroup, &stat);
    for (int i = 0; i < LIMIT_COUNT; i++) {
        ret->by[i] = scope->by[i];
        ret->hit[i] = hit_of(scope, (enum resource_limit)i, end, &stat);
    }
    ret->memory_peak = stat.memory_peak;
    ret->pids_peak = stat.pids_peak;
}

const char *resource_limits_command(void)
{
    if (access("/run/systemd/system", F_OK)) /* as sd_booted(3) */
        return NULL;
    return geteuid() == 0 ? "systemd-run --scope -p Delegate=yes cordon run"
                          : "systemd-run --user --scope -p Delegate=yes cordon run";
}

/* That `what` is so, why, and what to do. */
static void say(const struct resource_limits_scope *scope, const char *what, struct strv *ret)
{
    const char *command = resource_limits_command();

    strv_pushf(ret, "%s: %s%s%s", what, scope->no_cgroup.msg, command ? "; type: " : " ",
               command ? command : "(cordon doctor tells what to do)");
}

void resource_limits_warn(const struct resource_limits_scope *scope, struct strv *ret)
{
    if (scope->by[LIMIT_MEMORY] == LIMIT_BY_RLIMIT)
        say(scope, "--max-memory holds for each process by itself, not for all together", ret);
    if (!is_set(scope, LIMIT_PIDS) || is_default(scope, LIMIT_PIDS) || counts_own(scope))
        return;
    if (scope->by[LIMIT_PIDS] == LIMIT_UNSET)
        say(scope, "--max-pids is not enforced, as root's processes are not counted", ret);
    else if (scope->by[LIMIT_PIDS] == LIMIT_BY_RLIMIT)
        say(scope, "--max-pids counts all of your processes, not the command's alone", ret);
}

void resource_limits_close(struct resource_limits_scope *scope)
{
    cgroup_close(scope->cgroup);
    scope->cgroup = NULL;
}
