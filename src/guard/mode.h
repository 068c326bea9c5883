/* The modes of what is made and changed on behalf of the caller. */
#pragma once

#include "guard/guard.h"

/* umask(2) was called, and will be done by the kernel. */
void mode_note_mask(const struct request *request);

/* The caller's umask is ours from here on. false when it cannot be had. */
bool mode_take_mask(const struct request *request);

/* The answer to a call that changes a mode: CONTINUE, unless the filter asks because only directories may
 * get it. */
struct answer mode_change(const struct request *request);
