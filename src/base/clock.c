/* See clock.h. The frozen state is process-wide: everything that asks for the time in a test sees
 * the same hands. clock_gettime() cannot fail for the clocks used here (Linux has had both
 * since before any kernel we run on), so there is no error to report. */
#include "base/clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <time.h>

static struct {
    bool on;
    uint64_t now_ns;
    uint64_t wall_ns;
} frozen;

static uint64_t clock_read_ns(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * CLOCK_NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t clock_now_ns(void)
{
    return frozen.on ? frozen.now_ns : clock_read_ns(CLOCK_MONOTONIC);
}

uint64_t clock_wall_ns(void)
{
    return frozen.on ? frozen.wall_ns : clock_read_ns(CLOCK_REALTIME);
}

uint64_t clock_stamp_ns(void)
{
    return frozen.on ? frozen.wall_ns : clock_read_ns(CLOCK_REALTIME_COARSE);
}

uint64_t clock_after(uint64_t now_ns, uint64_t delay_ns)
{
    return delay_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + delay_ns;
}

void clock_format_utc(uint64_t wall_ns, char ret_text[CLOCK_UTC_SIZE])
{
    time_t seconds = (time_t)(wall_ns / CLOCK_NS_PER_S);
    unsigned ms = (unsigned)(wall_ns % CLOCK_NS_PER_S / CLOCK_NS_PER_MS);
    struct tm utc;
    size_t len;

    gmtime_r(&seconds, &utc);
    len = strftime(ret_text, CLOCK_UTC_SIZE, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(ret_text + len, CLOCK_UTC_SIZE - len, ".%03uZ", ms);
}

void clock_freeze(uint64_t now_ns, uint64_t wall_ns)
{
    frozen.on = true;
    frozen.now_ns = now_ns;
    frozen.wall_ns = wall_ns;
}

void clock_advance(uint64_t ns)
{
    frozen.now_ns += ns;
    frozen.wall_ns += ns;
}

void clock_release(void)
{
    frozen.on = false;
}
