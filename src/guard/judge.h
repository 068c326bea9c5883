/* What the kernel is going to refuse because of the sandbox. Only for facts: nothing is allowed or
 * refused here. */
#pragma once

#include "guard/guard.h"

/* Tells it if the sandbox, and nothing but the sandbox, is what this call will fail by. */
void judge(const struct request *request);
