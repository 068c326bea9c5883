/* See call_numbers.h. */
#include "call_numbers.h"

#include <stddef.h>

#ifdef __x86_64__
#include <asm/unistd_64.h>

#include "call_numbers_newer.h"

#define ENTRY(name) {#name, __NR_##name},

const struct call_number call_numbers_x86_64[] = {CALLS_COMMON(ENTRY) CALLS_X86_64(ENTRY){NULL, 0}};
#else
const struct call_number call_numbers_x86_64[] = {{NULL, 0}};
#endif
