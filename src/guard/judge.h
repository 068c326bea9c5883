/* What the kernel is going to refuse because of the sandbox: told, asked about, or done by a yes; and,
 * where that is told, what it is going to do. */
#pragma once

#include "guard/guard.h"

/* If the sandbox, and nothing but the sandbox, is what this call will fail by: what comes of it, else
 * `answer`, which is what it will be answered so far. */
struct answer judge(const struct request *request, struct answer answer);
