/* The modes of what is made and changed on behalf of the caller. */
#pragma once

#include "guard/guard.h"

/* The caller's umask is ours from here on. false when it cannot be had. */
bool mode_take_mask(const struct request *request);

/* The answer to a call that changes a mode: CONTINUE, unless the filter asks because only directories may
 * get it. */
struct answer mode_change(const struct request *request);
