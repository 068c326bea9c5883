/* See intake.h. The bytes of a head are copied before they are parsed, since parsing cuts them up; those of a body
 * move over as they come, without their chunks. The length of a body is judged where it is said, before any of it
 * came; of one in chunks, as they come. */
#include "mcp/http/intake.h"

#include <string.h>

void intake_init(struct intake *intake)
{
    *intake = (struct intake){.state = INTAKE_HEAD};
    buf_init(&intake->bytes, INTAKE_AHEAD_MAX);
    buf_init(&intake->head, HTTP_MESSAGE_HEAD_MAX);
    buf_init(&intake->body, INTAKE_BODY_MAX);
}

void intake_done(struct intake *intake)
{
    buf_done(&intake->bytes);
    buf_done(&intake->head);
    buf_done(&intake->body);
}

size_t intake_room(const struct intake *intake)
{
    return intake->state == INTAKE_WRONG ? 0 : intake->bytes.max - intake->bytes.len;
}

void intake_append(struct intake *intake, const void *bytes, size_t len)
{
    buf_append(&intake->bytes, bytes, len);
}

static enum intake_state intake_fail(struct intake *intake, int status)
{
    intake->status = status;
    return intake->state = INTAKE_WRONG;
}

static enum intake_state intake_too_large(struct intake *intake)
{
    err_set(&intake->err, ERR_LIMIT, "a body has at most %d bytes", INTAKE_BODY_MAX);
    return intake_fail(intake, 413);
}

static enum intake_state read_head(struct intake *intake)
{
    const char *bytes = intake->bytes.data ? intake->bytes.data : "";
    size_t len = http_head_len(bytes, intake->bytes.len);
    struct http_body *body = &intake->request.body;

    if (http_head_has_bare_line_feed(bytes, intake->bytes.len)) {
        err_set(&intake->err, ERR_INVALID, "the first line does not end in CR LF");
        return intake_fail(intake, 400);
    }
    if (len > HTTP_MESSAGE_HEAD_MAX || (!len && intake->bytes.len >= HTTP_MESSAGE_HEAD_MAX)) {
        err_set(&intake->err, ERR_LIMIT, "a head has at most %d bytes", HTTP_MESSAGE_HEAD_MAX);
        return intake_fail(intake, 431);
    }
    if (!len)
        return intake->state;
    buf_append(&intake->head, bytes, len);
    buf_consume(&intake->bytes, len);
    if (http_request_read(intake->head.data, len, &intake->request, &intake->err))
        return intake_fail(intake, 400);
    if (body->kind == HTTP_BODY_LENGTH && body->left > INTAKE_BODY_MAX)
        return intake_too_large(intake);
    body->has_no_trailers = true;
    return intake->state = INTAKE_HEAD_READ;
}

static enum intake_state read_body(struct intake *intake)
{
    struct http_body *body = &intake->request.body;
    struct http_piece piece = {.bytes = intake->bytes.data ? intake->bytes.data : "",
                               .len = intake->bytes.len};
    bool is_over = body->kind == HTTP_BODY_NONE;

    while (piece.len && !is_over) {
        if (http_body_take(body, &piece, &is_over, &intake->err))
            return intake_fail(intake, 400);
        if (!buf_append(&intake->body, piece.data, piece.data_len))
            return intake_too_large(intake);
    }
    buf_consume(&intake->bytes, intake->bytes.len - piece.len);
    return intake->state = is_over ? INTAKE_WHOLE : INTAKE_BODY;
}

enum intake_state intake_step(struct intake *intake)
{
    if (intake->state == INTAKE_HEAD)
        read_head(intake);
    else if (intake->state == INTAKE_BODY)
        read_body(intake);
    return intake->state;
}

void intake_take_body(struct intake *intake)
{
    intake->state = INTAKE_BODY;
}

void intake_next(struct intake *intake)
{
    buf_clear(&intake->head);
    buf_done(&intake->body); /* may have been large, and the connection may stay for long */
    intake->state = INTAKE_HEAD;
}

bool intake_is_empty(const struct intake *intake)
{
    return intake->state == INTAKE_HEAD && !intake->bytes.len;
}
