/* Sockets: what they are, and what they may be connected and bound to. */
#pragma once

#include "guard/guard.h"

/* The answer to socket(2), connect(2) and bind(2), as far as they are asked. */
struct answer socket_call(const struct request *request);
