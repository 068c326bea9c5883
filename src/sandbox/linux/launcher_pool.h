/* Launchers that wait in their namespaces for a plan. Started for a command, or ahead of it and
 * kept for the next one; left to end when their command is over. */
#pragma once

#include "base/err.h"
#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Where the launcher is: $CORDON_LINUX_SANDBOX_EXE, then as base/program.h finds programs, then the
 * running program itself if it is `cordon`. Absolute; the caller frees. NULL when there is none. */
char *launcher_path(struct err *err);

struct netns;
struct sandbox_view;

/* Which view something of a pool belongs to, by its namespaces' inode numbers; zero: none. */
struct seen_view {
    ino_t users;
    ino_t mounts;
};

struct launcher {
    struct list in_endings;
    pid_t pid;
    int pidfd;
    int status;  /* our end of the socket */
    int outside; /* root of the view that it has joined (O_PATH); -1: none */
    struct netns *netns;
    struct sandbox_view *view; /* borrowed; that it has joined; NULL: none */
};

/* A zeroed pool with `launcher` set is ready; launcher_pool_done() waits for what is left. */
struct launcher_pool {
    const char *launcher; /* borrowed */
    bool cache_idle;
    const char
        *ports; /* borrowed; the networks lead to the proxy, and let these ports of the host's
                               loopback in ("5432,6379", or ""). NULL: they lead nowhere */
    struct sandbox_view *view;   /* borrowed; entered, and joined by what is started; NULL: none */
    struct launcher *spare;      /* one that has never run a command */
    uint32_t spare_flags;        /* the namespaces it is in */
    struct seen_view spare_view; /* the view that it has joined */
    struct list endings;         /* launchers whose commands are over */
    struct list networks;        /* whose last process is gone */
    size_t networks_len;
};

/* The spare launcher, when it is in namespaces of these kinds (CLONE_NEW* `flags`); NULL: there is
 * none, make a new one. */
struct launcher *launcher_take(struct launcher_pool *pool, uint32_t flags);
struct launcher *launcher_new(struct launcher_pool *pool, uint32_t flags, struct err *err);

/* Starts a spare for the next command, if the pool caches; a failure waits for the next
 * launcher_new() to be told. */
void launcher_prepare(struct launcher_pool *pool, uint32_t flags);

/* Its command is over, it has nothing to do but to end: does not block. */
void launcher_leave(struct launcher_pool *pool, struct launcher *init);

/* Leaves the spare to its end, and reaps what has ended. False: something has not ended yet. */
bool launcher_rest(struct launcher_pool *pool);

/* Ends it with everything it started, and waits for that. */
void launcher_kill(struct launcher_pool *pool, struct launcher *init, bool has_pid_namespace);

void launcher_pool_done(struct launcher_pool *pool);
