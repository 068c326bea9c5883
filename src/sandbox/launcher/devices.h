/* The devices that a command gets. */
#pragma once

#include "sandbox/launcher/mounts.h"

/* Takes the harmless device nodes aside, before /dev is covered. */
int devices_hold(struct mounts *mounts, struct err *err);

/* Mounts /dev with them. */
int devices_mount(struct mounts *mounts, struct err *err);

/* Takes the terminal on descriptor 0 aside, before /dev is replaced. A terminal that has no name
 * in the host's /dev is left as it is: only its name is missing inside then. */
void devices_hold_console(struct mounts *mounts);

/* Shows the terminal held before as /dev/console and makes 0, 1 and 2 (those that are terminals)
 * descriptors of that, so that opening them again by name works inside. */
int devices_show_console(struct mounts *mounts, struct err *err);
