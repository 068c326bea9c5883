/* What the filter of a sandbox has to say to a system call: written from the requirement, by name,
 * with the kernel headers' numbers, sharing nothing with seccomp.c. */
#pragma once

#include "sandbox/linux/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

#define ALLOWED SECCOMP_RET_ALLOW
#define REFUSED (SECCOMP_RET_ERRNO | EPERM)
#define UNKNOWN (SECCOMP_RET_ERRNO | ENOSYS)
#define ASKED SECCOMP_RET_USER_NOTIF
#define KILLED SECCOMP_RET_KILL_PROCESS

enum { REFERENCE_LAST = 600, REFERENCE_X32_BIT = 0x40000000 };

extern const uint32_t reference_audit_arch[SECCOMP_ARCH_COUNT];
extern const char *const reference_arch_names[SECCOMP_ARCH_COUNT];

/* Are the numbers of this architecture known on this machine? */
bool reference_has(enum seccomp_arch arch);

/* -1 when this architecture has no such call. */
int reference_number(enum seccomp_arch arch, const char *name);

/* "" for a call that the reference has no opinion of. */
const char *reference_name(enum seccomp_arch arch, int nr);

uint32_t reference_verdict(const struct seccomp_spec *spec, const struct seccomp_data *data);
