/* The file-system operations of a plan: everything that changes the mount namespace. */
#pragma once

#include "sandbox/launcher/plan_reader.h"

/* Harmless device nodes, in the order of `struct mounts.devices`. */
enum { MOUNTS_DEVICES = 6 };

struct mounts {
    int host; /* "/" as the host has it; for sources */
    int root; /* "/" of the tree that is being built; for targets */
    int mask; /* a mounted directory holding "dir" and "file", both empty and without any right */
    int devices[MOUNTS_DEVICES];
    int channel; /* to the guard, borrowed; -1 */
    int console; /* copy of the mount of the command's terminal, -1 when it has none */
    int slots[PLAN_MAX_SLOTS];
};

int mounts_init(struct mounts *mounts, struct err *err);

/* Carries out one record of the plan. */
int mounts_apply(struct mounts *mounts, const struct plan_view *plan,
                 const struct plan_record *record, struct err *err);

/* Takes the terminal on descriptor 0 aside, before /dev is replaced. A terminal that has no name
 * in the host's /dev is left as it is: only its name is missing inside then. */
void mounts_hold_console(struct mounts *mounts);

/* Shows the terminal held before as /dev/console and makes 0, 1 and 2 (those that are terminals)
 * descriptors of that, so that opening them again by name works inside. */
int mounts_show_console(struct mounts *mounts, struct err *err);
