/* See launch_limits.h. Since Linux 5.14 the kernel counts processes by user namespace and user, and a
 * command has a namespace of its own; that a kernel is not older shows in its Landlock (ABI 2 came with
 * 5.19). Root's processes are never counted (fork(2)): what bounds them is how many numbers their pid
 * namespace has. */
#include "sandbox/linux/launch_limits.h"

#include <sched.h>
#include <sys/resource.h>

enum { MOST_NUMBERS = (4 << 20) - 300 }; /* the kernel's PID_MAX_LIMIT, without what it reserves */

enum process_counter launch_counter(uint32_t namespaces, const struct plan_host *facts)
{
    if (facts->is_root)
        return (namespaces & CLONE_NEWPID) && facts->counts_pids ? COUNTER_PID_NAMESPACE
                                                                 : COUNTER_USER;
    return (namespaces & CLONE_NEWUSER) && facts->landlock >= 2 ? COUNTER_USER_NAMESPACE
                                                                : COUNTER_USER;
}

size_t launch_limit_records(const struct launch_limits *limits, enum process_counter counter,
                            struct plan_record ret[LAUNCH_LIMITS_MAX])
{
    const struct {
        uint64_t value;
        int resource;
    } all[LAUNCH_LIMITS_MAX] = {
        {limits->data, RLIMIT_DATA},       {limits->address_space, RLIMIT_AS},
        {limits->cpu_time, RLIMIT_CPU},    {limits->processes, RLIMIT_NPROC},
        {limits->file_size, RLIMIT_FSIZE}, {limits->files, RLIMIT_NOFILE},
    };
    size_t len = 0;

    for (size_t i = 0; i < LAUNCH_LIMITS_MAX; i++) {
        const uint64_t value = all[i].value;

        if (!value)
            continue;
        if (all[i].resource == RLIMIT_NPROC && counter == COUNTER_PID_NAMESPACE)
            ret[len++] = (struct plan_record){.op = PLAN_PIDS,
                                              .value = value < MOST_NUMBERS ? value : MOST_NUMBERS};
        else
            ret[len++] = (struct plan_record){
                .op = PLAN_LIMIT, .other = (uint32_t)all[i].resource, .value = value};
    }
    return len;
}
