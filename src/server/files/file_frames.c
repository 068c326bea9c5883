/* See file_frames.h. What the helper says is held against limits: it runs no foreign code, but it
 * is on the other side. */
#include "server/files/file_frames.h"

#include "files/call.h"

#include <string.h>

void file_frames_init(struct file_frames *ret)
{
    *ret = (struct file_frames){0};
    buf_init(&ret->text, REPLY_TEXT_MAX);
}

void file_frames_done(struct file_frames *frames)
{
    buf_done(&frames->text);
}

/* A whole head is here. */
static int head_check(struct file_frames *frames, struct err *err)
{
    const struct frame_head *head = &frames->head;
    bool is_answer = head->kind == FRAME_MORE || head->kind == FRAME_RESULT;

    if (!(is_answer || head->kind == FRAME_FAILURE) || head->len > FRAME_MAX ||
        (head->kind == FRAME_FAILURE && head->len != sizeof frames->failure))
        return err_set(err, ERR_BUG, "cordon-files sent what is no answer (kind %u, %u bytes)",
                       head->kind, head->len);
    frames->rest = head->len;
    return 0;
}

/* Some bytes of the payload. */
static int payload_take(struct file_frames *frames, const char *bytes, size_t len, struct err *err)
{
    char *failure = (char *)&frames->failure;

    if (frames->head.kind == FRAME_FAILURE)
        memcpy(failure + sizeof frames->failure - frames->rest, bytes, len);
    else if (!buf_append(&frames->text, bytes, len))
        return err_set(err, ERR_LIMIT, "the answer is larger than %d bytes", REPLY_TEXT_MAX);
    frames->rest -= len;
    return 0;
}

static bool frame_is_whole(const struct file_frames *frames)
{
    return frames->head_len == sizeof frames->head && frames->rest == 0;
}

/* Takes what belongs to the current frame and moves on behind it. */
static int frame_take(struct file_frames *frames, const char **bytes, size_t *len, struct err *err)
{
    size_t missing = sizeof frames->head - frames->head_len;
    size_t used = missing < *len ? missing : *len;

    memcpy((char *)&frames->head + frames->head_len, *bytes, used);
    frames->head_len += used;
    *bytes += used;
    *len -= used;
    if (frames->head_len < sizeof frames->head)
        return 0;
    if (missing && head_check(frames, err))
        return -1;
    used = frames->rest < *len ? frames->rest : *len;
    if (payload_take(frames, *bytes, used, err))
        return -1;
    *bytes += used;
    *len -= used;
    return 0;
}

int file_frames_take(struct file_frames *frames, const char *bytes, size_t len, struct err *err)
{
    while (len) {
        if (frame_take(frames, &bytes, &len, err))
            return -1;
        if (!frame_is_whole(frames))
            continue;
        frames->head_len = 0;
        if (frames->head.kind == FRAME_MORE)
            continue;
        frames->failure.msg[sizeof frames->failure.msg - 1] = '\0';
        return len ? err_set(err, ERR_BUG, "cordon-files went on behind its answer") : 1;
    }
    return 0;
}

const struct err *file_frames_failure(const struct file_frames *frames)
{
    return frames->head.kind == FRAME_FAILURE ? &frames->failure : NULL;
}
