/* The limits of one launch as records of its plan. */
#pragma once

#include "sandbox/linux/plan.h"
#include "sandbox/sandbox.h"

#include <stddef.h>
#include <stdint.h>

enum { LAUNCH_LIMITS_MAX = 6 };

/* Who counts the processes of a command in these namespaces. */
enum process_counter launch_counter(uint32_t namespaces, const struct plan_host *facts);

/* Fills `ret` with the limits that are set; returns how many. */
size_t launch_limit_records(const struct launch_limits *limits, enum process_counter counter,
                            struct plan_record ret[LAUNCH_LIMITS_MAX]);
