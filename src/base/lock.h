/* What others hold of a file, a lock (flock(2)) or a lease (F_SETLEASE), is waited for, but not for ever. */
#pragma once

#include <stdint.h>

/* `operation`: LOCK_SH or LOCK_EX. -1 with errno: EWOULDBLOCK when others kept it for `wait_ns`. No
 * signal is used, and the wait costs no time of the processor. */
int lock_take(int fd, int operation, uint64_t wait_ns);

/* Makes the file `path` if it is not there, and takes its exclusive lock, which lasts as long as
 * the descriptor. -1 with errno as above. Nobody can read the file (mode 0200): to take a lock one
 * has to open it, and a command in a sandbox, which cannot write there, must not be able to keep
 * its host's other programs waiting. */
int lock_file_take(const char *path, uint64_t wait_ns);

/* open(2) with O_NONBLOCK: where somebody has a lease on the file, he is asked to give it up, and that is
 * waited for. -1 with errno: EWOULDBLOCK when he kept it for `wait_ns`. */
int lock_open(const char *path, int flags, uint64_t wait_ns);
