/* The init of the sandbox: waits for the command, passes signals on, reports how it ended, and
 * leaves nothing behind. */
#pragma once

#include "sandbox/launcher/plan_format.h"

#include <stdbool.h>
#include <sys/types.h>

/* Reports over PLAN_STATUS_FD. Nobody listening any more is not an error. */
void pid1_report(const struct plan_message *message);

/* Until `command` ends or the other end of the status socket closes, whichever is first; then
 * kills whatever is left and reports. `flags` of enum plan_command_flag: PID_NAMESPACE, this
 * process is pid 1 of its own pid namespace, otherwise it is the subreaper of its descendants;
 * LINGER, reports first and kills nothing unless the other end wants it or closes. */
void pid1_run(pid_t command, uint32_t flags);

/* Closes what the set-up left open, the host's tree above all, but 0 to 2. */
void pid1_close_rest(void);

/* Blocks every signal and returns a descriptor that delivers them. */
int pid1_signals(struct err *err);

/* Has the kernel kill this process when the thread that started it ends. false when that has
 * happened already. */
bool pid1_follow_parent(void);
