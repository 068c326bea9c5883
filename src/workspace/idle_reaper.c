/* See cooler.h. A sandbox knows itself when its last command is gone, so nobody has to count who
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

struct cooler {
    struct loop_timer *timer;
    struct idle *items; /* the one that is idle for the longest first */
    size_t len;
    size_t cap;
};

static void cooler_drop(struct cooler *cooler, size_t index)
{
    cooler->len--;
    for (size_t i = index; i < cooler->len; i++)
        cooler->items[i] = cooler->items[i + 1];
}

static void on_time(void *data)
{
    struct cooler *cooler = data;
    uint64_t now = clock_now_ns();

    while (cooler->len && now - cooler->items[0].since_ns >= COOL_NS) {
        struct sandbox *sandbox = cooler->items[0].sandbox;

        cooler_drop(cooler, 0);
        if (sandbox_is_idle(sandbox))
            sandbox_cool(sandbox);
    }
    if (cooler->len)
        loop_timer_start(cooler->timer, cooler->items[0].since_ns + COOL_NS - now);
}

struct cooler *cooler_new(struct loop *loop)
{
    struct cooler *cooler = alloc_zero(1, sizeof *cooler);

    cooler->timer = loop_timer_new(loop, on_time, cooler);
    return cooler;
}

void cooler_free(struct cooler *cooler)
{
    if (!cooler)
        return;
    loop_timer_free(cooler->timer);
    free(cooler->items);
    free(cooler);
}

void cooler_forget(struct cooler *cooler, const struct sandbox *sandbox)
{
    for (size_t i = 0; cooler && i < cooler->len; i++) {
        if (cooler->items[i].sandbox == sandbox) {
            cooler_drop(cooler, i);
            return;
        }
    }
}

void cooler_on_idle(void *data, struct sandbox *sandbox)
{
    struct cooler *cooler = data;

    cooler_forget(cooler, sandbox);
    cooler->items = alloc_grow(cooler->items, cooler->len, &cooler->cap, sizeof *cooler->items);
    cooler->items[cooler->len++] = (struct idle){.sandbox = sandbox, .since_ns = clock_now_ns()};
    if (cooler->len == 1)
        loop_timer_start(cooler->timer, COOL_NS);
}
