/* Bytes for a descriptor of ours (stdout, stderr) that may be slow: what it does not take is
 * queued, in order, and nobody waits for it. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct loop;
struct outlet;

struct outlet_options {
    struct loop *loop;
    int fd; /* borrowed; its flags are left alone */
    /* The queue fell below OUTLET_LOW after outlet_write() had said that it is full; or the reader
     * went away. From the loop only. */
    void (*on_change)(void *data);
    void *data;
};

enum {
    OUTLET_HIGH = 1024 * 1024, /* bytes: full from here on */
    OUTLET_LOW = 256 * 1024,   /* bytes: room again */
};

struct outlet *outlet_new(const struct outlet_options *options, struct err *err);
void outlet_free(struct outlet *outlet); /* drops what waits; safe on NULL */

/* Copies. Returns whether there is room for more. After a failure all is dropped. */
bool outlet_write(struct outlet *outlet, const void *bytes, size_t len);
bool outlet_is_full(const struct outlet *outlet);

/* errno value of the failure; 0: none. EPIPE: the reader went away. */
int outlet_error(const struct outlet *outlet);

/* Writes what waits, however long it takes. */
void outlet_finish(struct outlet *outlet);
