/* See stdin_pump.h. One buffer of bytes that wait: it is read into only when empty, so a command that
 * does not read stops us from reading, and so the writer on our stdin waits, too.
 *
 * The descriptor may be the user's stdin: its flags are shared with the process that started us, so
 * it is never made non-blocking; a read that follows readiness does not block. Files are always
 * ready and cannot be watched: they are read in turns of the loop (a timer of 0). */
#include "process/stdin_pump.h"

#include "base/alloc.h"
#include "loop/loop.h"
#include "process/command_stdio.h"
#include "process/process.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

struct stdin_pump {
    struct process *process;
    int fd; /* -1: nothing more comes than what waits */
    struct loop_watch *watch;
    struct loop_timer *turn; /* for files */
    bool is_paused;          /* nothing is read now */
    const char *next;
    size_t left;
    char buffer[INPUT_MAX];
};

void stdin_pump_stop(struct stdin_pump *pump)
{
    loop_watch_free(pump->watch);
    loop_timer_free(pump->turn);
    pump->watch = NULL;
    pump->turn = NULL;
    pump->fd = -1;
    pump->left = 0;
}

/* Wants to read again, or not. */
static void stdin_pump_set_reading(struct stdin_pump *pump, bool on)
{
    on = on && !pump->is_paused;
    if (pump->watch)
        loop_watch_set(pump->watch, on ? LOOP_READ : LOOP_NOTHING);
    else if (pump->turn && on)
        loop_timer_start(pump->turn, 0);
}

void stdin_pump_pause(struct stdin_pump *pump, bool on)
{
    pump->is_paused = on;
    stdin_pump_set_reading(pump, !pump->left);
}

void stdin_pump_push(struct stdin_pump *pump)
{
    size_t taken = process_write(pump->process, pump->next, pump->left);

    pump->next += taken;
    pump->left -= taken;
    if (!pump->left && pump->fd < 0)
        process_close_input(pump->process);
    else
        stdin_pump_set_reading(pump, !pump->left);
}

static void stdin_pump_read(void *data)
{
    struct stdin_pump *pump = data;
    ssize_t n;

    if (pump->is_paused) /* since the loop found it ready */
        return;
    n = read(pump->fd, pump->buffer, sizeof pump->buffer);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        stdin_pump_set_reading(pump, true);
        return;
    }
    if (n <= 0) {
        stdin_pump_stop(pump);
        process_close_input(pump->process);
        return;
    }
    pump->next = pump->buffer;
    pump->left = (size_t)n;
    stdin_pump_push(pump);
}

static void stdin_pump_on_readable(void *data, int fd, unsigned ready)
{
    stdin_pump_read(data);
}

struct stdin_pump *stdin_pump_new_data(struct process *process, const void *data, size_t len)
{
    struct stdin_pump *pump = alloc_zero(1, sizeof *pump);

    pump->process = process;
    pump->fd = -1;
    pump->next = data;
    pump->left = len;
    stdin_pump_push(pump);
    return pump;
}

void stdin_pump_free(struct stdin_pump *pump)
{
    if (!pump)
        return;
    stdin_pump_stop(pump);
    free(pump);
}

struct stdin_pump *stdin_pump_new_fd(struct loop *loop, struct process *process, int fd,
                                     struct err *err)
{
    struct stdin_pump *pump = alloc_zero(1, sizeof *pump);
    struct err why;

    pump->process = process;
    pump->fd = fd;
    pump->watch = loop_watch_new(loop, fd, LOOP_READ, stdin_pump_on_readable, pump, &why);
    if (pump->watch)
        return pump;
    if (why.code != ERR_UNSUPPORTED) {
        *err = why;
        stdin_pump_free(pump);
        return NULL;
    }
    pump->turn = loop_timer_new(loop, stdin_pump_read, pump);
    stdin_pump_set_reading(pump, true);
    return pump;
}
