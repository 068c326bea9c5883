/* wslay reads frames: the order of fragments, control frames in between, and which Close code an
 * offence gets. The payload of data frames does not go through it: it unmasks and checks byte by
 * byte, and makes room for what a frame announces, while here room comes as the bytes do. So a
 * payload is taken first, and then wslay is shown the head of an empty frame; a head that it would
 * refuse is shown as it is. Frames that go out are not given to wslay but for control frames: it
 * would copy each message, and without fragments there is nothing to a frame but a head and, for
 * the side that connected, a mask. */
#include "rpc/transport/ws.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "rpc/transport/frame_in.h"

#include <endian.h>
#include <string.h>
#include <sys/random.h>
#include <wslay/wslay.h>

enum {
    KEPT_BYTES = 64 * 1024,      /* memory that stays for the next message */
    PART_BYTES = 64 * 1024,      /* of a payload, at a time */
    CONTROL_BYTES = 1024 * 1024, /* of pongs for the pings of one read; more than ever fits */
};

struct ws {
    wslay_event_context_ptr context;
    const struct ws_events *events;
    void *data;
    struct frame_in frame; /* that is being read */
    struct buf message;    /* so far */
    size_t checked;        /* bytes of it that are UTF-8 */
    bool is_text;          /* the message */
    struct buf control;    /* control frames of this round */
    size_t message_max;
    bool is_client;  /* this side connected */
    bool is_broken;  /* on_read said so */
    bool is_closing; /* ws_close() was called, or wslay found an offence */
};

static ssize_t ws_fill(struct ws *ws, void *ret_bytes, size_t len)
{
    ssize_t n = ws->events->on_read(ws->data, ret_bytes, len);

    if (n < 0)
        ws->is_broken = true;
    return n;
}

static bool ws_read_head(struct ws *ws)
{
    struct frame_in *frame = &ws->frame;

    while (frame_in_missing(frame)) {
        ssize_t n = ws_fill(ws, frame->head + frame->head_len, frame_in_missing(frame));

        if (n <= 0)
            return false;
        frame->head_len += (size_t)n;
    }
    frame_in_begin(frame, !ws->is_client);
    if (frame->is_plain && frame_in_opcode(frame) != WSLAY_CONTINUATION_FRAME)
        ws->is_text = frame_in_opcode(frame) == WSLAY_TEXT_FRAME;
    return true;
}

/* A message that is text has to be UTF-8; what is here of it may end inside a character. */
static bool ws_check_text(struct ws *ws)
{
    size_t left = ws->message.len - ws->checked;
    size_t tail = 0;
    size_t good = ws->is_text ? utf8_valid_len(ws->message.data + ws->checked, left, &tail) : left;

    ws->checked += good;
    return good + tail == left;
}

/* Some bytes of the payload; false when there are none now, or the connection is over. */
static bool ws_take_part(struct ws *ws)
{
    struct frame_in *frame = &ws->frame;
    struct buf *message = &ws->message;
    size_t len = frame->left < PART_BYTES ? (size_t)frame->left : PART_BYTES;
    char *part = buf_extend(message, len);
    ssize_t n;

    if (!part) {
        ws_close(ws, WSLAY_CODE_MESSAGE_TOO_BIG, "message too big");
        return false;
    }
    n = ws_fill(ws, part, len);
    message->len -= len - (size_t)(n > 0 ? n : 0);
    message->data[message->len] = '\0';
    if (n <= 0)
        return false;
    frame_in_unmask(frame, part, (size_t)n);
    frame->left -= (size_t)n;
    if (ws_check_text(ws))
        return true;
    ws_close(ws, WSLAY_CODE_INVALID_FRAME_PAYLOAD_DATA, NULL);
    return false;
}

/* false when not all of it is here. */
static bool ws_take_payload(struct ws *ws)
{
    while (ws->frame.left)
        if (ws->is_closing || !ws_take_part(ws))
            return false;
    frame_in_empty(&ws->frame);
    return true;
}

/* Bytes of the frame for wslay; 0 for none now, -1 for never again. */
static ssize_t ws_show(struct ws *ws, uint8_t *bytes, size_t len)
{
    struct frame_in *frame = &ws->frame;
    ssize_t n;

    if (frame->shown == 0 && !(frame->is_begun || ws_read_head(ws)))
        return ws->is_broken ? -1 : 0;
    if (frame->shown == 0 && frame->is_plain && !ws_take_payload(ws))
        return ws->is_broken ? -1 : 0;
    if (frame->shown < frame->head_len)
        return (ssize_t)frame_in_show(frame, bytes, len);
    n = ws_fill(ws, bytes, len < frame->left ? len : (size_t)frame->left);
    frame->left -= (uint64_t)(n > 0 ? n : 0);
    return n;
}

static ssize_t ws_on_recv(wslay_event_context_ptr context, uint8_t *bytes, size_t len, int flags,
                          void *data)
{
    struct ws *ws = data;
    ssize_t n = ws_show(ws, bytes, len);

    if (ws->frame.is_begun && ws->frame.shown == ws->frame.head_len && !ws->frame.left)
        ws->frame = (struct frame_in){0};
    if (n > 0)
        return n;
    wslay_event_set_error(context, n < 0 ? WSLAY_ERR_CALLBACK_FAILURE : WSLAY_ERR_WOULDBLOCK);
    return -1;
}

static ssize_t ws_on_send(wslay_event_context_ptr context, const uint8_t *bytes, size_t len,
                          int flags, void *data)
{
    struct ws *ws = data;

    if (buf_append(&ws->control, bytes, len))
        return (ssize_t)len;
    wslay_event_set_error(context, WSLAY_ERR_CALLBACK_FAILURE);
    return -1;
}

static void ws_on_message(wslay_event_context_ptr context,
                          const struct wslay_event_on_msg_recv_arg *message, void *data)
{
    struct ws *ws = data;

    if (wslay_is_ctrl_frame(message->opcode) || ws->is_closing)
        return;
    if (ws->checked < ws->message.len) { /* its end is missing */
        ws_close(ws, WSLAY_CODE_INVALID_FRAME_PAYLOAD_DATA, NULL);
        return;
    }
    ws->events->on_message(ws->data, ws->message.data ? ws->message.data : "", ws->message.len);
    buf_clear(&ws->message);
    ws->checked = 0;
    if (ws->message.cap > KEPT_BYTES)
        buf_done(&ws->message);
}

static int ws_make_mask(uint8_t *bytes, size_t len)
{
    return getrandom(bytes, len, 0) == (ssize_t)len ? 0 : -1;
}

static int ws_on_mask(wslay_event_context_ptr context, uint8_t *bytes, size_t len, void *data)
{
    return ws_make_mask(bytes, len);
}

static struct ws *ws_make(const struct ws_events *events, void *data, size_t message_max,
                          bool is_client)
{
    static const struct wslay_event_callbacks callbacks = {
        .recv_callback = ws_on_recv,
        .send_callback = ws_on_send,
        .on_msg_recv_callback = ws_on_message,
        .genmask_callback = ws_on_mask,
    };
    struct ws *ws = alloc_zero(1, sizeof *ws);

    *ws = (struct ws){
        .events = events, .data = data, .message_max = message_max, .is_client = is_client};
    buf_init(&ws->message, message_max);
    buf_init(&ws->control, CONTROL_BYTES);
    if (is_client ? wslay_event_context_client_init(&ws->context, &callbacks, ws)
                  : wslay_event_context_server_init(&ws->context, &callbacks, ws))
        abort(); /* only memory can be missing; see alloc.h */
    wslay_event_config_set_no_buffering(ws->context, 1);
    wslay_event_config_set_max_recv_msg_length(ws->context, WS_FRAME_MAX);
    return ws;
}

struct ws *ws_new(const struct ws_events *events, void *data, size_t message_max)
{
    return ws_make(events, data, message_max, false);
}

struct ws *ws_new_client(const struct ws_events *events, void *data, size_t message_max)
{
    return ws_make(events, data, message_max, true);
}

void ws_free(struct ws *ws)
{
    if (!ws)
        return;
    wslay_event_context_free(ws->context);
    buf_done(&ws->message);
    buf_done(&ws->control);
    free(ws);
}

/* Hands on what wslay wants to say: answers to pings, a Close. */
static void ws_flush(struct ws *ws)
{
    wslay_event_send(ws->context);
    if (!ws->control.len)
        return;
    ws->events->on_control(ws->data, ws->control.data, ws->control.len);
    buf_done(&ws->control);
}

/* wslay answers a head that can not be (a long or fragmented control frame, a length in too many
 * bytes) by a Close without a code. RFC 6455, 7.4.1 has 1002 for it. */
static void ws_refuse_head(struct ws *ws)
{
    static const uint8_t close_frame[] = {0x88, 2, WSLAY_CODE_PROTOCOL_ERROR >> 8,
                                          WSLAY_CODE_PROTOCOL_ERROR & 0xff};
    /* Two known bytes need no secret mask: this one changes nothing. */
    static const uint8_t masked[] = {0x88,
                                     0x80 | 2,
                                     0,
                                     0,
                                     0,
                                     0,
                                     WSLAY_CODE_PROTOCOL_ERROR >> 8,
                                     WSLAY_CODE_PROTOCOL_ERROR & 0xff};

    ws->is_closing = true;
    wslay_event_shutdown_write(ws->context);
    if (ws->is_client)
        ws->events->on_control(ws->data, masked, sizeof masked);
    else
        ws->events->on_control(ws->data, close_frame, sizeof close_frame);
}

enum ws_state ws_read(struct ws *ws)
{
    if (ws->is_closing)
        return WS_CLOSED_BY_US;
    if (wslay_event_recv(ws->context) && !ws->is_broken)
        ws_refuse_head(ws);
    if (ws->is_broken)
        return WS_BROKEN;
    ws_flush(ws);
    if (wslay_event_get_close_received(ws->context) && !ws->is_closing)
        return WS_CLOSED_BY_PEER;
    if (ws->is_closing || wslay_event_get_close_sent(ws->context)) {
        ws->is_closing = true;
        return WS_CLOSED_BY_US;
    }
    return WS_OPEN;
}

void ws_ping(struct ws *ws)
{
    static const struct wslay_event_msg ping = {.opcode = WSLAY_PING};

    wslay_event_queue_msg(ws->context, &ping);
    ws_flush(ws);
}

void ws_close(struct ws *ws, uint16_t code, const char *reason)
{
    size_t len = reason ? utf8_cut(reason, strlen(reason), WS_REASON_MAX) : 0;

    if (ws->is_closing)
        return;
    ws->is_closing = true;
    wslay_event_shutdown_read(ws->context);
    wslay_event_queue_close(ws->context, code, (const uint8_t *)reason, len);
    ws_flush(ws);
}

uint16_t ws_code_sent(const struct ws *ws)
{
    if (!ws->is_closing)
        return 0;
    return wslay_event_get_close_sent(ws->context)
               ? wslay_event_get_status_code_sent(ws->context)
               : WSLAY_CODE_PROTOCOL_ERROR; /* ws_refuse_head() */
}

/* RFC 6455, 5.2: FIN and opcode 1 (text), then the length in 7, 7 + 16 or 7 + 64 bits. */
size_t ws_head(size_t len, uint8_t ret_head[WS_HEAD_MAX])
{
    uint16_t len16 = htobe16((uint16_t)len);
    uint64_t len64 = htobe64(len);

    ret_head[0] = 0x81;
    if (len < 126) {
        ret_head[1] = (uint8_t)len;
        return 2;
    }
    if (len <= UINT16_MAX) {
        ret_head[1] = 126;
        memcpy(ret_head + 2, &len16, sizeof len16);
        return 2 + sizeof len16;
    }
    ret_head[1] = 127;
    memcpy(ret_head + 2, &len64, sizeof len64);
    return 2 + sizeof len64;
}

size_t ws_head_masked(char *text, size_t len, uint8_t ret_head[WS_HEAD_MAX])
{
    size_t at = ws_head(len, ret_head);
    uint8_t *mask = ret_head + at;

    if (ws_make_mask(mask, WS_MASK_LEN))
        abort(); /* Linux never returns less for so little */
    ret_head[1] |= 0x80;
    for (size_t i = 0; i < len; i++)
        text[i] = (char)(text[i] ^ mask[i % WS_MASK_LEN]);
    return at + WS_MASK_LEN;
}
