/* Which of some sockets are open in which processes: one look at all of /proc for any number of
 * sockets, in small steps. Internal to rpc.
 *
 *     lookout_new(inodes, len)
 *     lookout_step()           again and again, with whatever else is to do in between
 *     lookout_verdict()        of each socket
 *     lookout_free()
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lookout_verdict {
    LOOKOUT_NOBODY,  /* it was not found, or is not where it was any more */
    LOOKOUT_WELCOME, /* some process has it open, and none that was seen to is a command */
    LOOKOUT_COMMAND, /* a command of Cordon's has it open (ancestry.h) */
};

struct lookout;

/* `inodes`: of sockets, as in tcp_owner.h; copied. */
struct lookout *lookout_new(const uint32_t *inodes, size_t len);
void lookout_free(struct lookout *lookout);

/* Goes on for a few dozen microseconds. true: the look is over. */
bool lookout_step(struct lookout *lookout);

/* When the look is over, of one of its sockets. A descriptor that is only on its way from one
 * process to another, or in a process that this one cannot see, is not found. */
enum lookout_verdict lookout_verdict(const struct lookout *lookout, uint32_t inode);
