/* Descriptors that go from process to process with a packet (SCM_RIGHTS, unix(7)). */
#pragma once

#include <stddef.h>
#include <sys/types.h>

enum { PASS_MAX = 8 }; /* descriptors with one packet */

/* Sends `len` bytes and `count` descriptors (at least one; they stay the caller's) as one packet.
 * -1 with errno. */
int pass_send(int socket, const void *data, size_t len, const int *fds, size_t count);

/* Takes the next packet: its length; 0 at the end; -1 with errno. `ret_fds` has room for PASS_MAX,
 * of which `ret_count` came; they are the caller's, and close-on-exec. `flags`: MSG_DONTWAIT. */
ssize_t pass_receive(int socket, void *data, size_t size, int flags, int ret_fds[PASS_MAX],
                     size_t *ret_count);

/* For a packet that is not what was expected. */
void pass_close(const int *fds, size_t count);
