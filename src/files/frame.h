/* How the server and the program `cordon-files` talk: frames on a stream socket, in the byte order
 * of the one machine that both run on. One call at a time:
 *
 *     server    DATA     for fs/writeFile: what would be `dataBase64` in the parameters
 *               CALL     {"method": ..., "params": {...}}
 *     program   MORE     a block of the answer's text; any number of them
 *               RESULT   its end; for fs/open with the open file beside it
 *        or     FAILURE  a struct err; what came of the text does not count
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

enum frame_kind { FRAME_CALL, FRAME_DATA, FRAME_MORE, FRAME_RESULT, FRAME_FAILURE };

struct frame_head {
    uint32_t kind; /* of enum frame_kind */
    uint32_t len;  /* bytes that follow */
};

/* Of one frame: a message of 64 MiB with whatever its paths became, is the largest. */
enum { FRAME_MAX = 96 << 20 };

/* Sends a frame, and `fd` with it unless it is -1. Waits as long as it takes. */
int frame_send(int socket, const struct frame_head *head, const void *payload, int fd,
               struct err *err);

/* 1 and the next frame's payload in `ret` (emptied first), 0 at the end of the stream, -1. Waits.
 */
int frame_receive(int socket, enum frame_kind *ret_kind, struct buf *ret, struct err *err);
