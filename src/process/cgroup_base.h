/* The cgroups that a process is in, for cgroup_base.c and cgroup.c. */
#pragma once

#include "process/cgroup.h"

#define CGROUP_FILE_MAX ((size_t)1 << 20) /* bytes of one of the kernel's text files */

struct cgroup_own {
    char *v2;                     /* the directory as it is mounted here; NULL: none is seen */
    char *v1[CGROUP_CONTROLLERS]; /* the same of each controller that v1 has */
    bool is_top;                  /* `v2` is the topmost that we know of */
};

int cgroup_own_read(const struct cgroup_paths *paths, struct cgroup_own *ret, struct err *err);
void cgroup_own_done(struct cgroup_own *own);
