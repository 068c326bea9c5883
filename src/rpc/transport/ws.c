/* Frames in, and the heads of frames out.
 *
 *     head (2 to 14 bytes) --> payload, part by part --> end of the frame --> next head
 *
 * A head is read whole and judged before a byte of its payload is. The payload of data frames goes
 * straight to the end of the message, for which room is made as the bytes come, not as the head
 * announces them; it is unmasked there and checked for UTF-8 (a part may end inside a character).
 * Control frames have at most 125 bytes, may come between the fragments of a message, and are
 * answered when all that can be read now was read, in one piece.
 *
 * An offence is answered with a Close frame that has its code (7.4.1), and nothing is read any
 * more. Frames that go out are made by the caller: there is nothing to them but a head and, for the
 * side that connected, a mask. Extensions and subprotocols are not offered, so no reserved bit is
 * allowed. Sections are those of RFC 6455. */
#include "rpc/transport/ws.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/utf8.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    KEPT_BYTES = 64 * 1024,      /* memory that stays for the next message */
    PART_BYTES = 64 * 1024,      /* of a payload, at a time */
    CONTROL_MAX = 125,           /* bytes of a control frame's payload (5.5) */
    REPLY_BYTES = 64 * 1024,     /* of control frames that are sent in one piece */
    CODE_LEN = sizeof(uint16_t), /* of a Close frame */
};

/* The parts of the first two bytes (5.2). */
enum { FIN = 0x80, RESERVED = 0x70, OPCODE = 0x0f, MASKED = 0x80, LENGTH = 0x7f };
enum { LENGTH_16 = 126, LENGTH_64 = 127 }; /* the length is in the next 2 or 8 bytes */

enum opcode { CONTINUATION, TEXT, BINARY, CLOSE = 8, PING, PONG };

/* Status codes of 7.4.1. */
enum { CODE_PROTOCOL = 1002, CODE_BAD_TEXT = 1007, CODE_TOO_BIG = 1009 };

/* One that comes in. */
struct frame {
    uint8_t head[WS_HEAD_MAX];
    size_t head_len;  /* bytes of it so far */
    bool has_head;    /* the head is whole and right, and what follows is known */
    uint64_t payload; /* bytes */
    uint64_t left;    /* of the payload: not read yet */
};

struct ws {
    const struct ws_events *events;
    void *data;
    enum ws_side side;
    enum ws_state state;
    struct frame frame;           /* that is being read */
    struct buf message;           /* so far */
    size_t checked;               /* bytes of it that are UTF-8 */
    bool is_text;                 /* the message */
    bool is_fragmented;           /* its last frame has not come */
    uint8_t control[CONTROL_MAX]; /* payload of a control frame */
    struct buf reply;             /* control frames to be sent */
    uint16_t code_sent;           /* of the Close */
};

struct ws *ws_new(enum ws_side side, const struct ws_events *events, void *data, size_t message_max)
{
    struct ws *ws = alloc_zero(1, sizeof *ws);

    *ws = (struct ws){.events = events, .data = data, .side = side};
    buf_init(&ws->message, message_max);
    buf_init(&ws->reply, REPLY_BYTES);
    return ws;
}

void ws_free(struct ws *ws)
{
    if (!ws)
        return;
    buf_done(&ws->message);
    buf_done(&ws->reply);
    free(ws);
}

uint16_t ws_code_sent(const struct ws *ws)
{
    return ws->code_sent;
}

/* --- masks (5.3) --- */

static void mask_make(uint8_t ret[WS_MASK_LEN])
{
    if (getrandom(ret, WS_MASK_LEN, 0) != WS_MASK_LEN)
        abort(); /* Linux never returns less for so little */
}

/* `offset`: of the bytes in their payload. Eight at a time: the mask has four. */
static void mask_apply(const uint8_t *mask, uint64_t offset, char *bytes, size_t len)
{
    uint8_t turned[8];
    uint64_t word;
    size_t i = 0;

    for (size_t k = 0; k < sizeof turned; k++)
        turned[k] = mask[(offset + k) % WS_MASK_LEN];
    memcpy(&word, turned, sizeof word);
    for (; i + sizeof word <= len; i += sizeof word) {
        uint64_t part;

        memcpy(&part, bytes + i, sizeof part);
        part ^= word;
        memcpy(bytes + i, &part, sizeof part);
    }
    for (; i < len; i++)
        bytes[i] = (char)(bytes[i] ^ turned[i % sizeof turned]);
}

/* --- out --- */

size_t ws_head(size_t len, uint8_t ret_head[WS_HEAD_MAX])
{
    uint16_t len16 = htobe16((uint16_t)len);
    uint64_t len64 = htobe64(len);

    ret_head[0] = FIN | TEXT;
    if (len < LENGTH_16) {
        ret_head[1] = (uint8_t)len;
        return 2;
    }
    if (len <= UINT16_MAX) {
        ret_head[1] = LENGTH_16;
        memcpy(ret_head + 2, &len16, sizeof len16);
        return 2 + sizeof len16;
    }
    ret_head[1] = LENGTH_64;
    memcpy(ret_head + 2, &len64, sizeof len64);
    return 2 + sizeof len64;
}

size_t ws_head_masked(char *text, size_t len, uint8_t ret_head[WS_HEAD_MAX])
{
    size_t at = ws_head(len, ret_head);

    ret_head[1] |= MASKED;
    mask_make(ret_head + at);
    mask_apply(ret_head + at, 0, text, len);
    return at + WS_MASK_LEN;
}

static void ws_flush(struct ws *ws)
{
    if (ws->reply.len)
        ws->events->on_control(ws->data, ws->reply.data, ws->reply.len);
    buf_done(&ws->reply);
}

/* `len` is at most CONTROL_MAX. */
static void ws_reply(struct ws *ws, enum opcode opcode, const void *payload, size_t len)
{
    bool is_masked = ws->side == WS_CLIENT;
    size_t head_len = 2 + (is_masked ? WS_MASK_LEN : 0);
    char *frame = buf_extend(&ws->reply, head_len + len);

    if (!frame) {
        ws_flush(ws);
        frame = buf_extend(&ws->reply, head_len + len);
    }
    frame[0] = (char)(FIN | opcode);
    frame[1] = (char)(len | (is_masked ? MASKED : 0));
    if (len)
        memcpy(frame + head_len, payload, len);
    if (is_masked) {
        mask_make((uint8_t *)frame + 2);
        mask_apply((uint8_t *)frame + 2, 0, frame + head_len, len);
    }
}

void ws_ping(struct ws *ws)
{
    if (ws->state != WS_OPEN)
        return;
    ws_reply(ws, PING, NULL, 0);
    ws_flush(ws);
}

void ws_close(struct ws *ws, uint16_t code, const char *reason)
{
    uint8_t payload[CONTROL_MAX] = {(uint8_t)(code >> 8), (uint8_t)code};
    size_t len = reason ? utf8_cut(reason, strlen(reason), WS_REASON_MAX) : 0;

    if (ws->state != WS_OPEN)
        return;
    ws->state = WS_CLOSED_BY_US;
    ws->code_sent = code;
    if (len)
        memcpy(payload + CODE_LEN, reason, len);
    ws_reply(ws, CLOSE, payload, CODE_LEN + len);
    ws_flush(ws);
}

/* --- the head of a frame --- */

static size_t frame_length_bytes(const struct frame *frame)
{
    unsigned length = frame->head[1] & LENGTH;

    return length == LENGTH_64 ? 8 : length == LENGTH_16 ? 2 : 0;
}

static bool frame_is_masked(const struct frame *frame)
{
    return frame->head[1] & MASKED;
}

static unsigned frame_opcode(const struct frame *frame)
{
    return frame->head[0] & OPCODE;
}

static bool frame_is_control(const struct frame *frame)
{
    return frame_opcode(frame) >= CLOSE;
}

/* Bytes of the head that have to be read next; 0 when all of it is there. */
static size_t frame_missing(const struct frame *frame)
{
    size_t mask = frame_is_masked(frame) ? WS_MASK_LEN : 0;

    return (frame->head_len < 2 ? 2 : 2 + frame_length_bytes(frame) + mask) - frame->head_len;
}

/* What is wrong with a head here: a status code; 0: nothing. A length has to be written in as few
 * bytes as possible. */
static uint16_t ws_judge_head(const struct ws *ws)
{
    const struct frame *frame = &ws->frame;
    unsigned opcode = frame_opcode(frame);
    size_t bytes = frame_length_bytes(frame);
    uint64_t least = bytes == 8 ? UINT16_MAX + 1 : bytes ? LENGTH_16 : 0;

    if (frame->head[0] & RESERVED || frame->payload < least || frame->payload >> 63 ||
        frame_is_masked(frame) != (ws->side == WS_SERVER))
        return CODE_PROTOCOL;
    if (frame_is_control(frame))
        return opcode > PONG || !(frame->head[0] & FIN) || frame->payload > CONTROL_MAX
                   ? CODE_PROTOCOL
                   : 0;
    if (opcode > BINARY || (opcode == CONTINUATION) != ws->is_fragmented)
        return CODE_PROTOCOL;
    return frame->payload > WS_FRAME_MAX ? CODE_TOO_BIG : 0;
}

static ssize_t ws_fill(struct ws *ws, void *ret_bytes, size_t len)
{
    ssize_t n = ws->events->on_read(ws->data, ret_bytes, len);

    if (n < 0 && ws->state == WS_OPEN)
        ws->state = WS_BROKEN;
    return n;
}

/* false when not all of it is here, or it is wrong. */
static bool ws_read_head(struct ws *ws)
{
    struct frame *frame = &ws->frame;
    size_t bytes;
    uint16_t code;

    for (size_t missing; (missing = frame_missing(frame));) {
        ssize_t n = ws_fill(ws, frame->head + frame->head_len, missing);

        if (n <= 0)
            return false;
        frame->head_len += (size_t)n;
    }
    bytes = frame_length_bytes(frame);
    frame->payload = bytes ? 0 : frame->head[1] & LENGTH;
    for (size_t i = 0; i < bytes; i++)
        frame->payload = frame->payload << 8 | frame->head[2 + i];
    frame->left = frame->payload;
    code = ws_judge_head(ws);
    if (code) {
        ws_close(ws, code, NULL);
        return false;
    }
    frame->has_head = true;
    if (frame_opcode(frame) == TEXT || frame_opcode(frame) == BINARY)
        ws->is_text = frame_opcode(frame) == TEXT;
    return true;
}

/* --- its payload --- */

/* Some bytes to `ret_bytes`, unmasked; 0 for none now, or never again. */
static size_t ws_read_part(struct ws *ws, char *ret_bytes, size_t len)
{
    struct frame *frame = &ws->frame;
    ssize_t n = ws_fill(ws, ret_bytes, len);

    if (n <= 0)
        return 0;
    if (frame_is_masked(frame))
        mask_apply(frame->head + frame->head_len - WS_MASK_LEN, frame->payload - frame->left,
                   ret_bytes, (size_t)n);
    frame->left -= (uint64_t)n;
    return (size_t)n;
}

static bool ws_read_data(struct ws *ws)
{
    struct buf *message = &ws->message;
    size_t len = ws->frame.left < PART_BYTES ? (size_t)ws->frame.left : PART_BYTES;
    char *part = buf_extend(message, len);
    size_t tail = 0; /* of a text: it may end inside a character */
    size_t left;
    size_t good;
    size_t n;

    if (!part) {
        ws_close(ws, CODE_TOO_BIG, "message too big");
        return false;
    }
    n = ws_read_part(ws, part, len);
    message->len -= len - n;
    message->data[message->len] = '\0';
    left = message->len - ws->checked;
    good = ws->is_text ? utf8_valid_len(message->data + ws->checked, left, &tail) : left;
    ws->checked += good;
    if (good + tail != left)
        ws_close(ws, CODE_BAD_TEXT, NULL);
    return n && ws->state == WS_OPEN;
}

/* --- the end of a frame --- */

/* The codes that may stand in a Close frame (7.4.2). */
static bool is_valid_code(unsigned code)
{
    return (code >= 1000 && code <= 1011 && code != 1004 && code != 1005 && code != 1006) ||
           (code >= 3000 && code <= 4999);
}

/* It is echoed. One byte is no code, and counts as none. */
static void ws_take_close(struct ws *ws, size_t len)
{
    unsigned code = len >= CODE_LEN ? (unsigned)(ws->control[0] << 8 | ws->control[1]) : 0;

    if (len >= CODE_LEN && !is_valid_code(code)) {
        ws_close(ws, CODE_PROTOCOL, NULL);
        return;
    }
    if (len > CODE_LEN && !utf8_is_valid((const char *)ws->control + CODE_LEN, len - CODE_LEN)) {
        ws_close(ws, CODE_BAD_TEXT, NULL);
        return;
    }
    ws->state = WS_CLOSED_BY_PEER;
    ws->code_sent = (uint16_t)code;
    ws_reply(ws, CLOSE, ws->control, len >= CODE_LEN ? len : 0);
}

static void ws_take_frame(struct ws *ws)
{
    const struct frame frame = ws->frame;
    struct buf *message = &ws->message;

    ws->frame = (struct frame){0};
    if (frame_opcode(&frame) == CLOSE) {
        ws_take_close(ws, (size_t)frame.payload);
    } else if (frame_opcode(&frame) == PING) {
        ws_reply(ws, PONG, ws->control, (size_t)frame.payload);
    } else if (!frame_is_control(&frame)) {
        ws->is_fragmented = !(frame.head[0] & FIN);
        if (ws->is_fragmented)
            return;
        if (ws->checked < message->len) { /* its end is missing */
            ws_close(ws, CODE_BAD_TEXT, NULL);
            return;
        }
        ws->events->on_message(ws->data, message->data ? message->data : "", message->len);
        buf_clear(message);
        ws->checked = 0;
        if (message->cap > KEPT_BYTES)
            buf_done(message);
    }
}

/* false: no more for now, or ever. */
static bool ws_read_frame(struct ws *ws)
{
    struct frame *frame = &ws->frame;

    if (!frame->has_head && !ws_read_head(ws))
        return false;
    while (frame->left) {
        char *control = (char *)ws->control + (frame->payload - frame->left);

        if (frame_is_control(frame) ? !ws_read_part(ws, control, (size_t)frame->left)
                                    : !ws_read_data(ws))
            return false;
    }
    ws_take_frame(ws);
    return true;
}

enum ws_state ws_read(struct ws *ws)
{
    while (ws->state == WS_OPEN && ws_read_frame(ws))
        ;
    if (ws->state != WS_BROKEN)
        ws_flush(ws);
    return ws->state;
}
