/* What the caller has: its memory, its descriptors. */
#pragma once

#include "guard/guard_format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A NUL-terminated text of less than `size` bytes: its length, or a negative errno (EFAULT,
 * ENAMETOOLONG, EPERM when the kernel does not let us look). */
int remote_text(pid_t thread, uint64_t address, char *ret, size_t size);

/* Just `len` bytes: 0 or a negative errno. */
int remote_bytes(pid_t thread, uint64_t address, void *ret, size_t len);

/* The process that the thread is of, and that one's parent; false when it is gone. */
bool remote_process(pid_t thread, pid_t *ret_process, pid_t *ret_parent);

/* The name that the kernel has for its program; "" when it is gone. */
void remote_name(pid_t thread, char ret[GUARD_COMM]);

/* A number that /proc/THREAD/status has behind `key` ("Tgid:"), of this base; -1. */
long remote_status(pid_t thread, const char *key, int base);

/* A signal waits for the thread that it has a handler for. */
bool remote_has_signal(pid_t thread);

/* A descriptor that becomes readable when the thread has ended (before Linux 6.9 its process), or a
 * negative errno. */
int remote_pidfd(pid_t thread);

/* SIGTERM, before anything else that it is told. */
void remote_terminate(int pidfd);

/* A copy of its descriptor `fd`, for the same open file, or a negative errno. */
int remote_fd(pid_t thread, int fd);
