/* What is decided about a command from its options alone: before its first attempt, and after a
 * sandbox has refused it something. `cordon explain` shows what execution_start() begins with. */
#pragma once

#include "approval/requirement.h"

#include <stdbool.h>

struct execution_options;
struct rules;
struct strv;
struct workspace;

/* The rules that count for it, sealed; the caller frees them. NULL under EXECUTION_UNRULED. */
struct rules *execution_rules(const struct execution_options *options);

/* What it begins with: may it run, is there a question, where does it run. Of the options it reads
 * all but the job and the callbacks. */
void execution_decide(const struct execution_options *options, const struct rules *rules,
                      struct requirement *ret);

/* What holds commands in it. */
enum confinement execution_confinement(const struct workspace *workspace);

/* Under which a yes for the session is remembered: approval_keys(). */
void execution_keys(const struct execution_options *options, struct strv *ret);

/* Flags; 0: the denial is the result. */
enum execution_retry_way {
    EXECUTION_RETRY_GRANT = 1 << 0,      /* in the sandbox, widened by what was refused */
    EXECUTION_RETRY_UNCONFINED = 1 << 1, /* without a sandbox */
    EXECUTION_RETRY_AGREED = 1 << 2,     /* the first yes covers it: no question is put */
};

unsigned execution_retry_ways(const struct execution_options *options, bool has_grant,
                              bool was_approved);

/* Whether a yes to the first question covers a second attempt: then it has to say so. */
bool execution_retry_is_covered(const struct execution_options *options);
