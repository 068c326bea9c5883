/* Which ways a second attempt may take. Internal to engine; part of execution.h. Pure. */
#pragma once

#include <stdbool.h>

struct denials;
struct execution_options;

/* Flags; 0: the denial is the result. */
enum execution_retry_way {
    EXECUTION_RETRY_GRANT = 1 << 0,      /* in the sandbox, widened by what was refused */
    EXECUTION_RETRY_UNCONFINED = 1 << 1, /* without a sandbox */
    EXECUTION_RETRY_AGREED = 1 << 2,     /* the first yes covers it: nobody is asked */
};

unsigned execution_retry_ways(const struct execution_options *options, bool has_grant,
                              bool was_approved);

/* Whether a yes to the first question covers a second attempt: then it has to say so. */
bool execution_retry_is_covered(const struct execution_options *options);

/* "the sandbox refused writing /etc/x (read from the output, so a guess)"; caller frees. */
char *execution_denial_words(const struct denials *denials);
