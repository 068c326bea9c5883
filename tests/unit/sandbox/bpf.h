/* Classic BPF as the kernel runs it on a system call, for tests of the filters. */
#pragma once

#include "sandbox/launcher/plan_format.h"

#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

/* The value that the filter returns for a call. Ends the test (cmocka) when the filter leaves its
 * bounds, or has an instruction that our filters do not use. */
uint32_t bpf_run(const struct plan_filter *code, size_t len, const struct seccomp_data *data);
