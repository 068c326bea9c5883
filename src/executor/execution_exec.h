/* Every program that a command executes (judge = "every-exec"): what is decided about it, and those
 * that run outside of the sandbox in the place of their caller. */
#pragma once

#include "approval/held.h"
#include "executor/execution.h"

/* For one attempt, in the workspace; all is borrowed. */
struct held_execs *execution_execs_new(const struct execution_options *options,
                                       const struct rules *rules, struct workspace *workspace);

/* For a command that no execution runs, as in a session, in the workspace of the options: of them loop,
 * rules, gate, policy, env and cwd are read, too, and only now. NULL: the workspace wants nothing judged. */
struct held_execs *execution_execs_for_session(const struct execution_options *options);
