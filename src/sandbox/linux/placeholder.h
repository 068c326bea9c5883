/* Placeholders: empty directories (or files) on the host in the place of names that do not exist,
 * for as long as a command runs that must not be able to make them. The launcher covers them
 * read-only.
 *
 * One table per process, counted, so that a thousand commands in one directory hold one descriptor
 * for each name. Not for use from several threads at once. */
#pragma once

#include "base/err.h"
#include "sandbox/linux/plan.h"

#include <stdbool.h>
#include <stddef.h>

struct placeholders;

/* Makes what is missing of `items` and holds it, and holds placeholders that another process made.
 * Other things that exist are left alone. `ret` becomes NULL when there is nothing to hold.
 * Nothing is left behind on failure. */
int placeholders_acquire(const struct plan_placeholder *items, size_t len,
                         struct placeholders **ret, struct err *err);

/* Is everything held still where it was? */
bool placeholders_are_valid(const struct placeholders *placeholders);

/* For each item asked for: true when it is missing and this user cannot make it. Then a command of
 * this user cannot either, and there is nothing to cover. NULL for NULL. */
const bool *placeholders_absent(const struct placeholders *placeholders);

/* Lets go, and removes what no other process holds. NULL is fine. */
void placeholders_release(struct placeholders *placeholders);

/* The registry directory of this user, which a command must not write to: the first that
 * can be had of "$XDG_RUNTIME_DIR/cordon", "/run/cordon" (root), "$HOME/.local/state/cordon",
 * "/tmp/cordon-UID". NULL with `err` when there can be none. */
const char *placeholders_registry(struct err *err);

/* Is what stands at `path` a placeholder? To all but its holders nothing is there. */
bool placeholder_file_is(const char *path);
