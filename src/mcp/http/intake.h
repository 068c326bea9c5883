/* The requests of one HTTP connection, one after the other: bytes in, then a head, then its body. Pure.
 *
 *     intake_append(intake, bytes, len)
 *     intake_step(intake)      INTAKE_HEAD_READ: `request` can be judged
 *     intake_take_body(intake) it was: its body may come
 *     intake_step(intake)      INTAKE_WHOLE: `body`, too
 *     intake_next(intake)      it was answered: on to what came behind it
 *
 * Strict, as base/http_message.h is: what two programs could read differently is INTAKE_WRONG, and nothing that
 * follows is read any more. */
#pragma once

#include "base/buf.h"
#include "base/http_message.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    INTAKE_BODY_MAX = 16 << 20,  /* bytes */
    INTAKE_AHEAD_MAX = 64 << 10, /* bytes that may come behind a request that is not answered */
};

enum intake_state {
    INTAKE_HEAD,      /* waits for more of a head */
    INTAKE_HEAD_READ, /* waits for intake_take_body() */
    INTAKE_BODY,      /* waits for more of a body */
    INTAKE_WHOLE,     /* waits for intake_next() */
    INTAKE_WRONG,     /* `status` and `err` say why; the connection is of no more use */
};

struct intake {
    enum intake_state state;
    struct buf bytes;            /* came, and are not used yet */
    struct buf head;             /* what `request` points into */
    struct http_request request; /* from HEAD_READ on, until intake_next() */
    struct buf body;
    int status; /* 400, 413 or 431 */
    struct err err;
};

void intake_init(struct intake *intake);
void intake_done(struct intake *intake);

/* How many bytes may be appended now; 0: none before the request is answered. */
size_t intake_room(const struct intake *intake);
void intake_append(struct intake *intake, const void *bytes, size_t len);

/* Goes on as far as the bytes go. */
enum intake_state intake_step(struct intake *intake);
void intake_take_body(struct intake *intake);
void intake_next(struct intake *intake);

/* No byte of a request has come since the last one was answered. */
bool intake_is_empty(const struct intake *intake);
