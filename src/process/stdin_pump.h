/* Relays bytes into a command's stdin: given data, or what comes from a descriptor. */
#pragma once

#include "base/err.h"

#include <stddef.h>

struct stdin_pump;
struct loop;
struct process;

/* `data` then end of file; borrowed for the life of the pump. */
struct stdin_pump *stdin_pump_new_data(struct process *process, const void *data, size_t len);

/* What `fd` (borrowed, of any kind, blocking or not) gives until its end, then end of file. NULL on
 * failure. */
struct stdin_pump *stdin_pump_new_fd(struct loop *loop, struct process *process, int fd,
                                     struct err *err);
void stdin_pump_free(struct stdin_pump *pump);

/* To be called on the events of the process's input. */
void stdin_pump_on_room(struct stdin_pump *pump);
void stdin_pump_on_closed(struct stdin_pump *pump);
