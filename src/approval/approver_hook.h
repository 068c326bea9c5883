/* Asks a program: one process per question.
 *
 *     its stdin     the question as JSON (approval.h), one line
 *     its stdout    {"decision": "approved" | "denied" | ..., "reason": "..."}, or
 *                   {"decision": "ask"}: the next approver is to be asked
 *
 * It runs outside of any sandbox, in the root directory: what its caller has found for it once, so that no
 * command can have another program answer.
 * Whatever else it says or does (an exit code but 0, another decision than those offered, no answer
 * in time) is a no, with the reason told. */
#pragma once

#include "approval/approvals.h"

#include <stdint.h>

#define APPROVER_HOOK_DEADLINE_NS UINT64_C(60000000000) /* 60 s */

/* `program` is absolute, `env` complete; both are copied. NULL on failure. */
struct approver *approver_hook_new(struct loop *loop, const char *program, char *const *env,
                                   uint64_t deadline_ns, struct err *err);
