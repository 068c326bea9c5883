/* Which of some sockets are open in which processes: one search of /proc for any number of sockets,
 * in small steps. Internal to rpc.
 *
 *     socket_holders_new(inodes, len)
 *     socket_holders_step()       again and again, with other work in between
 *     socket_holders_verdict()    of each socket
 *     socket_holders_free()
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* `pid` (as seen from here) is a command of Cordon's, or was started by one at any depth: this
 * process is above it, or the launcher of any Cordon is. true also when that cannot be found out:
 * it has ended, or cannot be seen. What is above this process itself does not count. */
bool is_sandboxed_pid(pid_t pid);

enum holders_verdict {
    HOLDERS_NOT_FOUND, /* it was not found, or is not where it was any more */
    HOLDERS_ALLOWED,   /* some process has it open, and none that was seen to is sandboxed */
    HOLDERS_SANDBOXED, /* a sandboxed process has it open */
};

struct socket_holders;

/* `inodes`: of sockets, as /proc/PID/fd has them; copied. */
struct socket_holders *socket_holders_new(const uint32_t *inodes, size_t len);
void socket_holders_free(struct socket_holders *holders);

/* Goes on for a few dozen microseconds. true: the search is over. */
bool socket_holders_step(struct socket_holders *holders);

/* When the search is over, of one of its sockets. A descriptor that is only on its way from one
 * process to another, or in a process that this one cannot see, is not found. */
enum holders_verdict socket_holders_verdict(const struct socket_holders *holders, uint32_t inode);
