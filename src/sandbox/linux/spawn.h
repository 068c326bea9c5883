/* Starting the launcher in its namespaces: the only place that clones. */
#pragma once

#include "base/err.h"
#include "base/list.h"

#include <stdint.h>
#include <sys/types.h>

/* A user namespace and a network namespace of it, with the loopback device up: made ahead, used by
 * one sandbox at a time, used again when every process of that sandbox is gone. */
struct netns {
    int user;
    int net;
    struct list in_pool;
};

struct netns *netns_new(struct err *err);
void netns_free(struct netns *netns);

struct spawn_request {
    const char *launcher;
    int status;                /* the launcher's end of the status socket */
    uint32_t namespaces;       /* CLONE_NEW* flags */
    const struct netns *netns; /* instead of CLONE_NEWUSER and CLONE_NEWNET; or NULL */
};

/* The process is a child of the caller with no exit signal, so that a host's SIGCHLD handling never
 * sees it: wait with __WALL. Its cost does not grow with the caller's memory. ERR_SYSTEM with the
 * kernel's errno when a namespace cannot be had. */
int spawn_launcher(const struct spawn_request *request, pid_t *ret_pid, int *ret_pidfd,
                   struct err *err);
