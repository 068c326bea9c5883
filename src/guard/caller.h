/* What is remembered of the threads that call: what takes a look in /proc, and seldom changes. */
#pragma once

#include "guard/guard.h"

/* The caller's umask; -1 when it cannot be read. */
int caller_mask(const struct request *request);

/* Its working directory, until kept_release(); NULL: it lies outside of the roots' mounts, or cannot be
 * kept. */
struct kept_dir *caller_cwd(const struct request *request);

/* It is about to change them. */
void caller_changes_mask(const struct request *request);
void caller_changes_cwd(const struct request *request);
