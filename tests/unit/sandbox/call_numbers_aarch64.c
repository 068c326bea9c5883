/* See call_numbers.h. aarch64 uses the generic table, with the options of its asm/unistd.h. */
#define __ARCH_WANT_SYS_CLONE3
#define __ARCH_WANT_RENAMEAT
#include "call_numbers.h"

#include <asm-generic/unistd.h>
#include <stddef.h>

#include "call_numbers_newer.h"

#define ENTRY(name) {#name, __NR_##name},

const struct call_number call_numbers_aarch64[] = {CALLS_COMMON(ENTRY){NULL, 0}};
