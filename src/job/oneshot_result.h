/* From what happened to a command to the result that its caller gets. Internal to exec. */
#pragma once

#include "job/oneshot.h"

enum stop_reason { STOP_NONE, STOP_TIMEOUT, STOP_CANCEL };

struct oneshot_facts {
    const struct oneshot_options *options;
    const struct resource_limits_scope *limits;
    const struct process_end *end;
    enum stop_reason stop; /* why we ended it, if we did */
    int stop_signal;       /* the signal to us that was the reason; 0: none */
};

/* Fills in what is known only after the end; `result` holds the captured output already. */
void oneshot_result_fill(struct oneshot_result *result, const struct oneshot_facts *facts);
