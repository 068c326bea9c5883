/* A program of ours that serves all sandboxes of this process from outside of them (the guard, the proxy): one
 * process, started with the first command that wants it, and told of each command over its control socket.
 *
 *     companion_join()      a sandbox is there that may need it
 *     companion_hand()      a command is there: its packet goes to the companion
 *     companion_leave()     the sandbox is gone; with the last one it ends
 *     companion_reap()      waits for that, a moment at most */
#pragma once

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct companion {
    const char *name;  /* of its program, "cordon-guard" */
    const char *word;  /* for people: "the guard" */
    bool is_nobody;    /* root's runs as nobody */
    bool gets_proxies; /* the variables that name proxies, of our own environment */
    const int *more;   /* descriptors that it has behind the control socket */
    size_t more_len;
    char *const *env; /* NULL: none, but for what `gets_proxies` says */
    /* What follows is the companion's own. */
    atomic_flag is_busy;
    unsigned users;
    pid_t owner; /* whose child it is */
    pid_t pid;   /* 0: none runs */
    int pidfd;
    int control;
    pid_t ending; /* has been left, and not been waited for */
    int ending_pidfd;
};

/* Where its program is: beside the launcher, in `room` of the build tree, or as base/program.h finds programs. The caller
 * frees. NULL when there is none. */
char *companion_program(const struct companion *companion, const char *launcher, const char *room);

void companion_join(struct companion *companion);
void companion_leave(struct companion *companion);
void companion_reap(struct companion *companion);

struct companion_packet {
    const void *data;
    size_t len;
    const int *fds;
    size_t fds_len;
};

struct companion_start {
    const char *program;   /* companion_program() */
    bool dies_with_thread; /* the kernel kills it with the thread that starts it */
};

/* Starts it, if there is none or the last has died; its control socket is companion->control. `*ret_is_new`: it was. */
int companion_open(struct companion *companion, const struct companion_start *start,
                   bool *ret_is_new, struct err *err);

/* Hands a command over to the companion, which is started if there is none or the last has died. */
int companion_hand(struct companion *companion, const struct companion_start *start,
                   const struct companion_packet *packet, struct err *err);
