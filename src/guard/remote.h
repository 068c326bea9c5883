/* Memory of the caller. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A NUL-terminated text of less than `size` bytes: its length, or a negative errno (EFAULT,
 * ENAMETOOLONG, EPERM when the kernel does not let us look). */
int remote_text(pid_t thread, uint64_t address, char *ret, size_t size);

/* Just `len` bytes: 0 or a negative errno. */
int remote_bytes(pid_t thread, uint64_t address, void *ret, size_t len);
