/* See drain.h. */
#include "process/drain.h"

#include "base/clock.h"
#include "loop/loop.h"

void drain_init(struct drain *drain, const struct process_drain *limits, struct loop_timer *timer)
{
    *drain = (struct drain){.limits = *limits, .timer = timer};
    if (!drain->limits.quiet_ns)
        drain->limits.quiet_ns = PROCESS_DRAIN_QUIET_NS;
    if (!drain->limits.total_ns)
        drain->limits.total_ns = PROCESS_DRAIN_TOTAL_NS;
}

void drain_done(struct drain *drain)
{
    loop_timer_free(drain->timer);
    *drain = (struct drain){0};
}

bool drain_is_on(const struct drain *drain)
{
    return drain->until_ns;
}

static uint64_t drain_left(const struct drain *drain)
{
    uint64_t now = clock_now_ns();

    return drain->until_ns > now ? drain->until_ns - now : 0;
}

bool drain_is_over(const struct drain *drain)
{
    return !drain_left(drain);
}

void drain_touch(struct drain *drain)
{
    uint64_t left = drain_left(drain);

    if (drain->until_ns)
        loop_timer_start(drain->timer,
                         left < drain->limits.quiet_ns ? left : drain->limits.quiet_ns);
}

void drain_begin(struct drain *drain)
{
    drain->until_ns = clock_after(clock_now_ns(), drain->limits.total_ns);
    drain_touch(drain);
}

void drain_pause(struct drain *drain)
{
    if (!drain->until_ns)
        return;
    drain->left_ns = drain_left(drain);
    loop_timer_stop(drain->timer);
}

void drain_resume(struct drain *drain)
{
    if (!drain->until_ns)
        return;
    drain->until_ns = clock_after(clock_now_ns(), drain->left_ns);
    drain_touch(drain);
}

void drain_stop(struct drain *drain)
{
    if (drain->until_ns)
        loop_timer_start(drain->timer, 0);
}
