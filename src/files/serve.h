/* Answering file calls from a socket. */
#pragma once

#include "base/err.h"

/* Answers the calls that come on `socket` until its end. Failures of calls are answers, not
 * errors. */
int files_serve(int socket, struct err *err);
