/* Input of a command: given data, or what comes from a descriptor. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct loop;
struct process;
struct stdin_pump;

/* `data` then end of file; borrowed for the life of the pump. */
struct stdin_pump *stdin_pump_new_data(struct process *process, const void *data, size_t len);

/* What `fd` (borrowed, of any kind, blocking or not) gives until its end, then end of file. NULL on
 * failure. */
struct stdin_pump *stdin_pump_new_fd(struct loop *loop, struct process *process, int fd,
                                     struct err *err);

void stdin_pump_pause(struct stdin_pump *pump, bool on); /* nothing is read meanwhile */
void stdin_pump_push(struct stdin_pump *pump);           /* there is room again (INPUT_ROOM) */
void stdin_pump_stop(struct stdin_pump *pump);           /* nobody reads any more (INPUT_CLOSED) */
void stdin_pump_free(struct stdin_pump *pump);           /* NULL is fine */
