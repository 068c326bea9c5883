/* Who is at the other end of a TCP connection that does not leave this host. Internal to rpc. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tcp_owner {
    uid_t uid;      /* as seen from here */
    uint32_t inode; /* of the socket, as in /proc/PID/fd; never 0: some process has it open */
};

/* `fd`: our end, connected. false when nobody has the other end open any more, when it is not on
 * this host, or when the kernel does not tell (sock_diag(7)). */
bool tcp_owner_find(int fd, struct tcp_owner *ret);
