/* The frames of one answer of `cordon-files` (files/frame.h), as their bytes come. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "files/frame.h"

#include <stdbool.h>
#include <stddef.h>

struct file_frames {
    struct frame_head head; /* of the frame that is coming in */
    size_t head_len;        /* bytes of it that are here */
    size_t rest;            /* bytes of the frame that are not */
    struct err failure;
    struct buf text; /* of the result so far */
};

void file_frames_init(struct file_frames *ret);
void file_frames_done(struct file_frames *frames);

/* Takes bytes: 1 when the answer is whole, 0 when more is to come; -1 for what is no answer, or
 * goes on behind it, or is larger than REPLY_TEXT_MAX. */
int file_frames_take(struct file_frames *frames, const char *bytes, size_t len, struct err *err);

/* Of a whole answer: why the call failed; NULL when it did not. Borrowed. */
const struct err *file_frames_failure(const struct file_frames *frames);
