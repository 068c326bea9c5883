/* Asks the person at the terminal: the question is written there, and a line read. */
#pragma once

#include "engine/approvals.h"

/* On the controlling terminal of this process, whatever stdin and stdout are. ERR_NOT_FOUND when
 * there is none. One question at a time; a second one is passed on. NULL on failure. */
struct asker *asker_terminal_new(struct loop *loop, struct err *err);
