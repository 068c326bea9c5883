/* The bytes of one connection: a socket, a pair of pipes, or files. Internal to rpc.
 *
 * Never blocks, and leaves O_NONBLOCK of descriptors that are shared with other programs as it is.
 */
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

struct stream;
struct loop;

enum {
    STREAM_AGAIN = -1,  /* nothing to read yet, or no room */
    STREAM_BROKEN = -2, /* errno says why */
};

/* `ready` is of LOOP_READ and LOOP_WRITE. */
typedef void stream_fn(void *data, unsigned ready);

/* Descriptors 0 and 1 for stream_new(). They are replaced by /dev/null, so that nothing else that reads or prints gets between
 * the messages. */
int stream_take_stdio(int *ret_in, int *ret_out, struct err *err);

/* Takes both descriptors (which may be one socket), also on failure. Nothing is wanted yet. */
struct stream *stream_new(struct loop *loop, int in, int out, struct err *err);
void stream_free(struct stream *stream); /* closes */
void stream_set_callback(struct stream *stream, stream_fn *on_ready, void *data);

/* What is read from; borrowed. */
int stream_fd(const struct stream *stream);

/* What to call back for; flags of loop_interest. */
void stream_want(struct stream *stream, unsigned interest);

/* Bytes read, 0 at the end, or STREAM_... . From what is no socket only after LOOP_READ was
 * reported, and once. */
ssize_t stream_read(struct stream *stream, void *ret_data, size_t len);

/* Bytes written, maybe fewer than given, or STREAM_... . */
ssize_t stream_write(struct stream *stream, const struct iovec *parts, size_t count);

/* The other end reads end of file, after what was written. Reading goes on. */
void stream_end_writing(struct stream *stream);
