/* The shell snapshot of a session: taken in the background when the session begins, used by its
 * commands from then on, deleted with it (rules/shell_snapshot.h says what is in it).
 *
 *     snapshot_start()
 *     snapshot_use() for each command     false until it is ready, and for ever when it failed
 *     snapshot_free()
 *
 * Until it is ready commands pay for their own login start-up; nothing waits for it. */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "exec/oneshot.h"

#include <stdbool.h>
#include <time.h>

struct snapshot;

/* Borrowed until snapshot_free(). */
struct snapshot_options {
    /* How the session runs commands: loop, sandbox, env and cwd count, timeout_ns (0:
     * SHELL_SNAPSHOT_TIMEOUT_S) for each step; the rest is set here. The sandbox has to let them
     * read `folder`. */
    struct oneshot_options job;
    const char *shell;           /* absolute */
    const char *folder;          /* for the file; made when it is missing */
    void (*on_over)(void *data); /* ready or failed, once and never from in here; may be NULL */
    void *data;
};

/* NULL on failure, also when the shell is of a kind without snapshots (ERR_UNSUPPORTED). */
struct snapshot *snapshot_start(const struct snapshot_options *options, struct err *err);

/* Ends what still runs and removes the file. */
void snapshot_free(struct snapshot *snapshot);

/* Path of the file once it is ready, else NULL. */
const char *snapshot_path(const struct snapshot *snapshot);

/* Why there is none; NULL as long as there may be or is one. */
const struct err *snapshot_failure(const struct snapshot *snapshot);

/* As shell_snapshot_use(): true when `argv`, to be run in `cwd`, shall be run by the words that
 * were appended to `ret` instead. Only in the folder in which the snapshot was taken. */
bool snapshot_use(const struct snapshot *snapshot, char *const *argv, const char *cwd,
                  char *const *keep, struct strv *ret);

/* Removes the snapshots in `folder` that are older than SHELL_SNAPSHOT_AGE_MAX_S at `now`: of
 * sessions that did not end as they should. A missing folder is an empty one. */
int snapshot_sweep(const char *folder, time_t now, struct err *err);
