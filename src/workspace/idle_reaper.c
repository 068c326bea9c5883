/* See idle_reaper.h. A sandbox knows itself when its last command is gone, so no caller has to count who
 * uses it; all that is kept here is since when each has been idle, and one timer for the first of
 * them. One that is in use again when its time comes is left out: it will tell anew. */
#include "workspace/idle_reaper.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "loop/loop.h"
#include "sandbox/sandbox.h"

#include <stddef.h>
#include <stdlib.h>

#define COOL_NS CLOCK_NS_PER_S

struct idle {
    struct sandbox *sandbox;
    uint64_t since_ns;
};

struct idle_reaper {
    struct loop_timer *timer;
    struct idle *items; /* the one that is idle for the longest first */
    size_t len;
    size_t cap;
};

static void idle_reaper_drop(struct idle_reaper *reaper, size_t index)
{
    reaper->len--;
    for (size_t i = index; i < reaper->len; i++)
        reaper->items[i] = reaper->items[i + 1];
}

static void on_time(void *data)
{
    struct idle_reaper *reaper = data;
    uint64_t now = clock_now_ns();

    while (reaper->len && now - reaper->items[0].since_ns >= COOL_NS) {
        struct sandbox *sandbox = reaper->items[0].sandbox;

        idle_reaper_drop(reaper, 0);
        if (sandbox_is_idle(sandbox))
            sandbox_release_idle(sandbox);
    }
    if (reaper->len)
        loop_timer_start(reaper->timer, reaper->items[0].since_ns + COOL_NS - now);
}

struct idle_reaper *idle_reaper_new(struct loop *loop)
{
    struct idle_reaper *reaper = alloc_zero(1, sizeof *reaper);

    reaper->timer = loop_timer_new(loop, on_time, reaper);
    return reaper;
}

void idle_reaper_free(struct idle_reaper *reaper)
{
    if (!reaper)
        return;
    loop_timer_free(reaper->timer);
    free(reaper->items);
    free(reaper);
}

void idle_reaper_forget(struct idle_reaper *reaper, const struct sandbox *sandbox)
{
    for (size_t i = 0; reaper && i < reaper->len; i++) {
        if (reaper->items[i].sandbox == sandbox) {
            idle_reaper_drop(reaper, i);
            return;
        }
    }
}

void idle_reaper_on_idle(void *data, struct sandbox *sandbox)
{
    struct idle_reaper *reaper = data;

    idle_reaper_forget(reaper, sandbox);
    reaper->items = alloc_grow(reaper->items, reaper->len, &reaper->cap, sizeof *reaper->items);
    reaper->items[reaper->len++] = (struct idle){.sandbox = sandbox, .since_ns = clock_now_ns()};
    if (reaper->len == 1)
        loop_timer_start(reaper->timer, COOL_NS);
}
