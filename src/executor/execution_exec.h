/* Every program that a command executes (judge = "every-exec"): what is decided about it, and those
 * that run outside of the sandbox in the place of their caller. */
#pragma once

#include "approval/held.h"
#include "executor/execution.h"

/* For one attempt, in the workspace; all is borrowed. */
struct held_execs *execution_execs_new(const struct execution_options *options,
                                       const struct rules *rules, struct workspace *workspace);
void execution_execs_free(struct held_execs *execs); /* kills what runs outside; NULL is fine */
