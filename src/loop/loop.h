/* The event loop: one thread, one loop, callbacks. A thin layer over libevent, whose types stay
 * out of this header.
 *
 *     loop_new()
 *     loop_watch_new(), loop_timer_new(), loop_signals_new()      say what to wait for
 *     loop_run(loop, &done)                                       until `done` is set
 *     ..._free() of every watch, then loop_free()
 *
 * Every callback may start, stop and free any watch, also its own. A watch that was freed or
 * stopped is never called again, not even for something that was already pending.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct loop_watch;
struct loop_timer;
struct loop_signals;

/* What a descriptor is watched for; flags. 0 pauses the watch. Errors and hang-up report as
 * whatever is watched, the next read or write then tells. */
enum loop_interest {
    LOOP_NOTHING = 0,
    LOOP_READ = 1,
    LOOP_WRITE = 2,
};

typedef void loop_watch_fn(void *data, int fd, unsigned ready);
typedef void loop_timer_fn(void *data);
typedef void loop_signal_fn(void *data, int signal);

/* NULL on failure. */
struct loop *loop_new(struct err *err);
void loop_free(struct loop *loop);

/* Runs callbacks until `*until` is true (looked at after each round). Fails with ERR_BUG when
 * nothing is left that could ever set it. */
int loop_run(struct loop *loop, const bool *until, struct err *err);

/* For a host that has a loop of its own: a descriptor, the loop's, that gets readable whenever
 * loop_dispatch() has something to do, timers included. -1 on failure. */
int loop_fd(struct loop *loop, struct err *err);

/* Waits until loop_dispatch() has something to do, a signal was handled, or so many milliseconds
 * are over (-1: as long as it takes). */
int loop_wait(struct loop *loop, int timeout_ms, struct err *err);

/* Calls back for everything that is ready, and never waits. */
int loop_dispatch(struct loop *loop, struct err *err);

/* Watches a descriptor, which stays the caller's and must stay open as long as the watch lives;
 * level-triggered. What is always ready (files, /dev/null) cannot be watched: ERR_UNSUPPORTED. A
 * pidfd gets readable when its process ends. */
struct loop_watch *loop_watch_new(struct loop *loop, int fd, unsigned interest,
                                  loop_watch_fn *on_ready, void *data, struct err *err);
void loop_watch_set(struct loop_watch *watch, unsigned interest);
void loop_watch_free(struct loop_watch *watch);

/* A one-shot timer, not yet running. */
struct loop_timer *loop_timer_new(struct loop *loop, loop_timer_fn *on_time, void *data);

/* Calls back once, `delay_ns` from now or some milliseconds later, never sooner; a timer that runs
 * starts anew. Delay 0 is a deferred call: made after the callbacks of this round. */
void loop_timer_start(struct loop_timer *timer, uint64_t delay_ns);
void loop_timer_stop(struct loop_timer *timer);
void loop_timer_free(struct loop_timer *timer);

/* Takes the signals of the 0-terminated list away from their default actions and reports them as
 * callbacks, by signalfd. They are blocked in the calling thread until the watch is freed: what is
 * executed meanwhile has to reset its signal mask. */
struct loop_signals *loop_signals_new(struct loop *loop, const int *signals,
                                      loop_signal_fn *on_signal, void *data, struct err *err);
void loop_signals_free(struct loop_signals *signals);
