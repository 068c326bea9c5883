/* One shell snapshot: taken in the background, by the first command that could use it, used by
 * later ones (rules/shell/shell_snapshot.h says what is in it). It is only ever in memory.
 *
 *     snapshot_start()
 *     snapshot_use() for each command     false until it is ready, and for ever when it failed
 *     snapshot_free()
 *
 * Until it is ready commands pay for their own login start-up; nothing waits for it. */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "job/job_run.h"

#include <stdbool.h>

struct snapshot;

/* Borrowed until it is over, but for `shell` and `job.cwd`, which are copied. */
struct snapshot_options {
    /* How the commands run that will use it: loop, sandbox, env and cwd count, timeout_ns (0:
     * SHELL_SNAPSHOT_TIMEOUT_S) for each step; the rest is set here. */
    struct job_run_options job;
    const char *shell;           /* absolute */
    void (*on_over)(void *data); /* ready or failed, once and never from in here; may be NULL */
    void *data;
};

/* NULL on failure, also when the shell is of a kind without snapshots (ERR_UNSUPPORTED). */
struct snapshot *snapshot_start(const struct snapshot_options *options, struct err *err);

/* Ends what still runs. */
void snapshot_free(struct snapshot *snapshot);

/* It can be used, or never will be; then on_over was called, or is about to be. */
bool snapshot_is_ready(const struct snapshot *snapshot);

/* Why there is none; NULL as long as there may be or is one. */
const struct err *snapshot_failure(const struct snapshot *snapshot);

/* As shell_snapshot_use(): true when `argv`, to be run in `cwd`, shall be run by the words that
 * were appended to `ret` instead, with what was appended to `ret_env` in its environment. Only in
 * the directory in which the snapshot was taken. */
bool snapshot_use(const struct snapshot *snapshot, char *const *argv, const char *cwd,
                  char *const *keep, struct strv *ret, struct strv *ret_env);
