/* The ledger of an apply: one file in the directory of the patch, locked by the process that works there. It
 * names everything that is prepared before it is made, and when all of it is made, it says so in
 * one write: from then on the patch is decided.
 *
 *     "cordon-patch 1", id                      NUL behind each text
 *     "A" | "R" | "D" | "F", path               a step; F: an ADD of a directory
 *     "d" | "f", path                           a directory, a file inside that
 *     "="                                       these are all
 *     "BEFORE AFTER"                            for each step: stamps, "inode size time" in hex
 *     "+"                                       decided: done, or to be done
 *     "-"                                       decided otherwise: to be taken back
 *
 * A text without its NUL at the end counts as never written. */
#pragma once

#include "base/err.h"
#include "patch/dir.h"
#include "patch/step.h"

#define LEDGER_NAME ".cordon-patch"

enum ledger_state {
    LEDGER_NONE,     /* there is no ledger */
    LEDGER_OPEN,     /* not decided: nothing has changed, things may have been prepared */
    LEDGER_DECIDED,  /* "+" */
    LEDGER_WITHDRAWN /* "-" */
};

struct ledger {
    int fd; /* holds the lock; -1: none */
    enum ledger_state state;
};

enum ledger_access { LEDGER_READ, LEDGER_WRITE };

/* Makes the ledger and locks it. False in `*ret_made` when there is one already. */
int ledger_make(const struct patch_dir *root, bool *ret_made, struct ledger *ret, struct err *err);

/* Waits for the process that works in the directory, and takes over the ledger that a killed one
 * left, with
 * its steps; state LEDGER_NONE when there is none. Refuses a file that is no ledger of this
 * user's. */
int ledger_take(const struct patch_dir *root, enum ledger_access access, struct ledger *ret,
                struct steps *ret_steps, struct err *err);

int ledger_write_steps(const struct ledger *ledger, const struct steps *steps, struct err *err);
int ledger_decide(const struct ledger *ledger, const struct steps *steps, struct err *err);
int ledger_withdraw(const struct ledger *ledger, struct err *err);

/* Removes the ledger: the directory is as it should be. */
int ledger_remove(const struct patch_dir *root, struct ledger *ledger, struct err *err);
void ledger_close(struct ledger *ledger);

/* The text of a ledger, pure. Steps that it does not hold whole are not there. ERR_INVALID for
 * what no apply can have written, and for what it may not: `kept` as in struct patch_dir. */
int ledger_parse(const char *text, size_t len, char *const *kept, struct steps *ret,
                 enum ledger_state *ret_state, struct err *err);
