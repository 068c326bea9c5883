/* Signals, where processes outside have numbers that the command can see. */
#pragma once

#include "guard/guard.h"

/* Tells of a signal that the sandbox alone refuses. The answer is the kernel's, always. */
struct answer kill_call(const struct request *request);
