/* A cgroup v2 directory of a command's own, where this host lets us make one.
 *
 *     cgroup_find_base()     the directory below which we may make cgroups with memory and pids
 *     cgroup_open()          make "cordon-<pid>-<n>" there (and remove those of dead owners)
 *     cgroup_set(), launch with cgroup_fd(), cgroup_stat()
 *     cgroup_close()         kill what is left in it, remove it
 *
 * Source of all file names and formats: Linux, Documentation/admin-guide/cgroup-v2.rst.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct cgroup;

/* Where to look; the kernel's own files unless a test says otherwise. */
struct cgroup_paths {
    const char *self;      /* NULL: /proc/self/cgroup */
    const char *mountinfo; /* NULL: /proc/self/mountinfo */
};

/* What the kernel counted; 0 where the kernel does not tell. */
struct cgroup_stat {
    uint64_t memory_peak; /* bytes */
    uint64_t oom_kills;
    uint64_t pids_peak;
    uint64_t pids_refused; /* forks that failed at the limit */
    uint64_t bytes_written;
};

/* Our own cgroup or the one above it, whichever may hold new cgroups with the controllers memory
 * and pids. NULL, with the reason in `err`, when this host offers none. Caller frees. */
char *cgroup_find_base(const struct cgroup_paths *paths, struct err *err);

/* NULL on failure. */
struct cgroup *cgroup_open(const char *base, struct err *err);
int cgroup_fd(const struct cgroup *cgroup); /* for CLONE_INTO_CGROUP */
const char *cgroup_path(const struct cgroup *cgroup);

/* Sets "memory.max" (then also no swap beyond it) or "pids.max". */
int cgroup_set_memory(struct cgroup *cgroup, uint64_t bytes, struct err *err);
int cgroup_set_pids(struct cgroup *cgroup, uint64_t count, struct err *err);

void cgroup_stat(const struct cgroup *cgroup, struct cgroup_stat *ret);

/* Kills what is left in it and removes it; a directory that is still busy stays for the next
 * run. */
void cgroup_close(struct cgroup *cgroup);
