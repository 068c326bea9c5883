/* What is taken away from the command beside its view of the files: capabilities, keyring,
 * Landlock, seccomp, resource limits. */
#pragma once

#include "sandbox/launcher/plan_reader.h"

/* Brings the loopback device of the new network namespace up. */
int restrict_loopback(struct err *err);

/* A new session keyring, unless this kernel has no keyrings. */
int restrict_keyring(struct err *err);

/* Empties every capability set and sets no_new_privs. */
int restrict_drop(struct err *err);

/* The records that apply to the command's own process: limits, Landlock, seccomp. In that order
 * as the plan has them; async-signal-safe. `channel` is what the filter's listener is sent over, -1
 * when it needs none. On failure `ret_op` names the operation. */
int restrict_command(const struct plan_view *plan, int channel, uint32_t *ret_op, struct err *err);
