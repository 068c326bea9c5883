/* Waiting for paths to appear, by inotify(7): one shot, and too early rather than too late. */
#pragma once

#include "base/err.h"

#include <stddef.h>

struct loop;
struct missing_watch;
struct strv;

/* `on_change` is called once, when one of the `missing` paths may be there (it, or a directory
 * above it, appeared or went), or `present` (may be NULL) may be gone. All clean and absolute. NULL
 * when there is nothing to wait for any more, or when this place cannot be watched; `err` says
 * which. */
struct missing_watch *missing_watch_new(struct loop *loop, const struct strv *missing,
                                        const char *present, void (*on_change)(void *data),
                                        void *data, struct err *err);
void missing_watch_free(struct missing_watch *watch);
