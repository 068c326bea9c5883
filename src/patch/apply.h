/* Changes, made in a directory: all of them, or none.
 *
 *     apply_begin()     waits for other patches here, recovers from one that was killed, locks
 *     changes_compute() with patch_dir_source(): reads
 *     apply_commit()    makes the changes
 *     apply_end()
 *
 * A process that is killed on the way, wherever, leaves a directory that the next apply_begin() in it
 * turns into the old one or the new one: the old one as long as the patch was not decided, the new
 * one after. Against a loss of power nothing is done (docs/decisions/0013-patches.md). */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "patch/changes.h"
#include "patch/dir.h"
#include "patch/ledger.h"

#include <stdbool.h>

/* What was found of an earlier patch. */
struct recovery {
    enum { RECOVERY_NONE, RECOVERY_COMPLETED, RECOVERY_UNDONE } what;
    struct strv left_alone; /* files that were changed since by others; as they are */
};

struct apply {
    const struct patch_dir *root;
    struct ledger ledger;
};

/* ERR_FORBIDDEN or ERR_SYSTEM when the directory cannot be written. recovery_done() and apply_end() by
 * the caller. */
int apply_begin(const struct patch_dir *root, struct recovery *ret_recovery, struct apply *ret,
                struct err *err);

/* On failure nothing has changed, unless the message says otherwise (something could not be taken
 * back; then the ledger stays). Once for each apply_begin(). */
int apply_commit(struct apply *apply, const struct changes *changes, struct err *err);

/* Safe on a zeroed apply that never began, when its ledger's fd is -1. */
void apply_end(struct apply *apply);
void recovery_done(struct recovery *recovery);

/* For readers: waits for a patch that is being applied. ERR_INVALID when one was interrupted and has
 * not been recovered from since. */
int apply_wait(const struct patch_dir *root, struct err *err);
