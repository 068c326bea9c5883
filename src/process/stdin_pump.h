/* Relays bytes into a command's stdin: given data, or what comes from a descriptor. Internal to
 * exec. */
#pragma once

#include "base/err.h"

#include <stddef.h>

struct feed;
struct loop;
struct process;

/* `data` then end of file; borrowed for the life of the feed. */
struct feed *feed_new_data(struct process *process, const void *data, size_t len);

/* What `fd` (borrowed, of any kind, blocking or not) gives until its end, then end of file. NULL on
 * failure. */
struct feed *feed_new_fd(struct loop *loop, struct process *process, int fd, struct err *err);
void feed_free(struct feed *feed);

/* To be called on the events of the process's input. */
void feed_on_room(struct feed *feed);
void feed_on_closed(struct feed *feed);
