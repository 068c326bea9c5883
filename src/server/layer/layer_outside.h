/* Real files that a layer would change, too: watched for others who change them, by inotify on their folders. */
#pragma once

#include "base/err.h"
#include "base/strv.h"

#include <stdbool.h>

struct layer_outside;
struct loop;

enum {
    LAYER_OUTSIDE_FOLDERS = 512,
    LAYER_OUTSIDE_TOLD = 256, /* paths in one message */
};

#define LAYER_OUTSIDE_NS UINT64_C(250000000) /* changes within that are told at once */

/* NULL on failure. `has_more`: others were changed, too. */
struct layer_outside *layer_outside_new(struct loop *loop,
                                        void (*on_changed)(void *data, const struct strv *paths,
                                                           bool has_more),
                                        void *data, struct err *err);
void layer_outside_free(struct layer_outside *outside);

/* These are the paths from now on: absolute, clean; taken over. */
void layer_outside_set(struct layer_outside *outside, struct strv *paths);
