/* Inits: launchers that wait in their namespaces for a plan. Started for a command, or ahead of it
 * and kept for the next one; left to end when their command is over. */
#pragma once

#include "base/err.h"
#include "sandbox/linux/spawn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct init {
    struct init *next;
    pid_t pid;
    int pidfd;
    int status; /* our end of the socket */
    struct netns *netns;
};

/* A zeroed pool with `launcher` set is ready; init_pool_done() waits for what is left. */
struct init_pool {
    const char *launcher; /* borrowed */
    bool keep_warm;
    struct init *spare;     /* one that has never run a command */
    uint32_t spare_flags;   /* the namespaces it is in */
    struct init *endings;   /* their commands are over */
    struct netns *networks; /* whose last process is gone */
    size_t networks_len;
};

/* An init in new namespaces (CLONE_NEW* `flags`), a spare one if there is one. NULL on failure. */
struct init *init_take(struct init_pool *pool, uint32_t flags, struct err *err);

/* Starts a spare for the next command, if the pool is kept warm; a failure waits for the next
 * init_take() to be told. */
void init_prepare(struct init_pool *pool, uint32_t flags);

/* Its command is over, it has nothing to do but to end: does not block. */
void init_leave(struct init_pool *pool, struct init *init);

/* Ends it with everything it started, and waits for that. */
void init_kill(struct init_pool *pool, struct init *init, bool has_pid_namespace);

void init_pool_done(struct init_pool *pool);
