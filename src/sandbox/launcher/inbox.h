/* How the launcher gets its plan and the command's standard descriptors. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

/* Closes every descriptor but the status socket. */
void inbox_clear(void);

/* Waits for the first packet on the status socket. false when the other end closed it, or what came
 * is none of ours. The command's stdio becomes 0, 1 and 2; `ret_file` is the plan. */
bool inbox_receive(int *ret_file);

/* Closes every descriptor that the command or its init has no use for. */
int inbox_close(struct err *err);
