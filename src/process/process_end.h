/* From what the launcher reports to how a process ended. Internal to exec; part of process.h. */
#pragma once

#include "process/process.h"

void process_end_set_exited(struct process_end *end, const struct launch_report *report);
void process_end_set_failed(struct process_end *end, enum launch_stage stage,
                            const struct err *failure);

/* For a shell and for models: the code, or 128 + n for signal n; 126 or 127 for what could not be
 * executed. */
int process_end_exit_code(const struct process_end *end);

/* Init went without a word. When it was killed, the kernel killed the command with it;
 * `has_started`: there was a command already, or we have killed it. */
void process_end_set_gone(struct process_end *end, bool has_started);
