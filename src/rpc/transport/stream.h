/* The bytes of one connection: a socket, a pair of pipes, or files. Internal to rpc.
 *
 * Never blocks, and leaves O_NONBLOCK of descriptors that are shared with other programs as it is.
 */
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

struct channel;
struct loop;

enum {
    CHANNEL_AGAIN = -1,  /* nothing to read yet, or no room */
    CHANNEL_BROKEN = -2, /* errno says why */
};

/* `ready` is of LOOP_READ and LOOP_WRITE. */
typedef void channel_fn(void *data, unsigned ready);

/* Takes both descriptors (which may be one socket), also on failure. Nothing is wanted yet. */
struct channel *channel_new(struct loop *loop, int in, int out, struct err *err);
void channel_free(struct channel *channel); /* closes */
void channel_set_callback(struct channel *channel, channel_fn *on_ready, void *data);

/* What is read from; borrowed. */
int channel_fd(const struct channel *channel);

/* What to call back for; flags of loop_interest. */
void channel_want(struct channel *channel, unsigned interest);

/* Bytes read, 0 at the end, or CHANNEL_... . From what is no socket only after LOOP_READ was
 * reported, and once. */
ssize_t channel_read(struct channel *channel, void *ret_data, size_t len);

/* Bytes written, maybe fewer than given, or CHANNEL_... . */
ssize_t channel_write(struct channel *channel, const struct iovec *parts, size_t count);

/* The other end reads end of file, after what was written. Reading goes on. */
void channel_end_writing(struct channel *channel);
