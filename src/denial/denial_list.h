/* Lists of denials. Internal to denial. Pure. */
#pragma once

#include "denial/denial.h"

void denial_done(struct denial *denial);

/* Takes `denial` over. The same thing refused twice is one denial, which counts, and beyond
 * DENIALS_MAX there are no more. */
void denials_push(struct denials *denials, struct denial *denial);

/* What is the same thing is one denial. */
void denials_merge(struct denials *denials);
