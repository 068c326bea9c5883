/* One WebSocket frame that comes in (RFC 6455, 5.2): its head, byte by byte, and what is said of
 * its payload. Pure. Internal to rpc.
 *
 *     while (frame_in_missing())      read so many bytes to head + head_len
 *     frame_in_begin()                the rest of the fields is known
 *     frame_in_unmask()               each part of the payload; then less is left
 */
#pragma once

#include "rpc/transport/ws.h"

struct frame_in {
    uint8_t head[WS_HEAD_MAX];
    size_t head_len;  /* bytes of it so far */
    size_t shown;     /* of those, by frame_in_show() */
    bool is_begun;    /* what follows is known */
    bool is_plain;    /* data, and nothing is wrong with its head by itself */
    uint64_t payload; /* bytes */
    uint64_t left;    /* of the payload: not read yet */
};

/* Bytes of the head that have to be read next; 0 when all of it is there. */
size_t frame_in_missing(const struct frame_in *frame);

/* The head is whole. `from_client`: it has to be masked, else it must not be. */
void frame_in_begin(struct frame_in *frame, bool from_client);

/* RFC 6455, 11.8; 0: it continues a message. */
unsigned frame_in_opcode(const struct frame_in *frame);

/* The next `len` bytes of the payload, before they are taken off `left`. */
void frame_in_unmask(const struct frame_in *frame, char *bytes, size_t len);

/* Makes the head that of the same frame without a payload. */
void frame_in_empty(struct frame_in *frame);

/* Copies at most `len` bytes of the head, from where the last call ended; returns how many. */
size_t frame_in_show(struct frame_in *frame, uint8_t *ret_bytes, size_t len);
