/* Starting the command from the init. */
#pragma once

#include "sandbox/launcher/plan_reader.h"

#include <sys/types.h>

struct command_failure {
    enum plan_stage stage;
    struct err err;
};

/* Gives every signal its default action. */
void command_signals(void);

/* Starts the plan's command with its restrictions and returns its pid once its program has been
 * executed. -1 with `ret_failure` when it could not be; nothing is left then. */
pid_t command_start(const struct plan_view *plan, struct command_failure *ret_failure);
