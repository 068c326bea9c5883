/* Clients that nobody wants beside oneself. */
#pragma once

#include "wire.h"

/* Runs until it is killed, and writes a byte to `ready` when it is at it. */
typedef void neighbour_fn(const struct bench *bench, const struct wire_server *server, int ready);

enum { NEIGHBOURS = 6 };

extern const struct neighbour {
    const char *name;
    neighbour_fn *run; /* NULL: nobody; that is the first */
} neighbours[NEIGHBOURS];

/* Returns when it is at it; 0 when it is nobody. */
pid_t neighbour_start(const struct neighbour *neighbour, const struct bench *bench,
                      const struct wire_server *server);
void neighbour_stop(pid_t pid);
