/* A lock on a file (flock(2)) that is waited for, but not for ever. */
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
