/* A cgroup of a command's own, where this host lets us make one: by folders (v2, or v1), or by
 * systemd, which is asked for a scope.
 *
 *     cgroup_base_find()     where new cgroups may be made with memory or pids
 *     cgroup_open()          makes "cordon-<pid>-<n>" there (and removes those of dead owners)
 *     cgroup_limit()         sets the limits
 *     cgroup_enter()         moves the launcher of a command into it
 *     cgroup_stat()          what the kernel counted
 *     cgroup_close()         kills what is left in it, removes it
 *
 *     cgroup_open_scope()    instead of the first four: a scope with the launcher in it
 *
 * Source of all file names and formats: Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cgroup;

/* Where to look; the kernel's own files unless a test says otherwise. */
struct cgroup_paths {
    const char *self;      /* NULL: /proc/self/cgroup */
    const char *mountinfo; /* NULL: /proc/self/mountinfo */
};

enum cgroup_controller { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CONTROLLERS };

/* The folders in which new cgroups may be made, by what is to be limited there; in v2 it is one. */
struct cgroup_base {
    char *dir[CGROUP_CONTROLLERS]; /* NULL: none */
    bool is_v1;
};

/* Our own cgroup or, in v2, the one above it. ERR_UNSUPPORTED, with the reason, when this host offers
 * neither memory nor pids. */
int cgroup_base_find(const struct cgroup_paths *paths, struct cgroup_base *ret, struct err *err);
void cgroup_base_done(struct cgroup_base *base);

/* By controller; 0: not wanted. */
struct cgroup_limits {
    uint64_t of[CGROUP_CONTROLLERS]; /* bytes (then also no swap beyond them), processes */
};

/* For what is wanted of `limits`. NULL when nothing can be made for it. */
struct cgroup *cgroup_open(const struct cgroup_base *base, const struct cgroup_limits *limits,
                           struct err *err);

/* -1 when nothing of it is kept (then `pid` is where it was); else cgroup_keeps() tells what is. */
int cgroup_limit(struct cgroup *cgroup, const struct cgroup_limits *limits, struct err *err);
int cgroup_enter(struct cgroup *cgroup, pid_t pid, struct err *err);

/* Asks systemd for a scope with `launcher` in it (0: an empty one): the user's, and root the system's.
 * Takes some milliseconds, and two seconds at most. NULL when nothing of it is kept. */
struct cgroup *cgroup_open_scope(pid_t launcher, const struct cgroup_limits *limits,
                                 struct err *err);

bool cgroup_keeps(const struct cgroup *cgroup, enum cgroup_controller controller);
const char *cgroup_path(const struct cgroup *cgroup, enum cgroup_controller controller);

/* What the kernel counted; 0 where it does not tell. */
struct cgroup_stat {
    uint64_t memory_peak; /* bytes */
    uint64_t oom_kills;
    uint64_t pids_peak;
    uint64_t pids_refused; /* forks that failed at the limit */
};

void cgroup_stat(const struct cgroup *cgroup, struct cgroup_stat *ret);

/* Kills what is left in it and removes it; a directory that is still busy stays for the next
 * run. */
void cgroup_close(struct cgroup *cgroup);
