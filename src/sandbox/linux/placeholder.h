/* Stand-ins: empty folders (or files) on the host in the place of names that do not exist, for as
 * long as a command runs that must not be able to make them. The launcher covers them read-only.
 *
 * One table per process, counted, so that a thousand sessions in one folder hold one descriptor
 * for each name. Not for use from several threads at once. */
#pragma once

#include "base/err.h"
#include "sandbox/linux/plan.h"

#include <stdbool.h>
#include <stddef.h>

struct standins;

/* Makes what is missing of `items` and holds it, and holds stand-ins that somebody else made.
 * Other things that exist are left alone. `ret` becomes NULL when there is nothing to hold.
 * Nothing is left behind on failure. */
int standins_acquire(const struct plan_standin *items, size_t len, struct standins **ret,
                     struct err *err);

/* Is everything held still where it was? */
bool standins_are_valid(const struct standins *standins);

/* For each item asked for: true when it is missing and this user cannot make it. Then a command of
 * this user cannot either, and there is nothing to cover. NULL for NULL. */
const bool *standins_absent(const struct standins *standins);

/* Lets go, and removes what nobody else holds. NULL is fine. */
void standins_release(struct standins *standins);

/* The registry folder of this user, which a command must not write to: the first that
 * can be had of "$XDG_RUNTIME_DIR/cordon", "/run/cordon" (root), "$HOME/.local/state/cordon",
 * "/tmp/cordon-UID". NULL with `err` when there can be none. */
const char *standins_registry(struct err *err);

/* Is what stands at `path` a placeholder? To all but its holders nothing is there. */
bool standin_file_is(const char *path);
