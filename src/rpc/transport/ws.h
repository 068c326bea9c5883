/* The frames of one WebSocket connection, either side (RFC 6455). Internal to rpc.
 *
 * Incoming bytes become messages; pings are answered and a Close is echoed by itself. Outgoing
 * messages are not queued here: ws_head() gives the bytes to put in front. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ws;

enum {
    WS_HEAD_MAX = 14, /* RFC 6455, 5.2: 2 bytes, up to 8 of length, 4 of mask */
    WS_MASK_LEN = 4,
    WS_FRAME_MAX = 16 * 1024 * 1024, /* bytes of payload in one frame that comes in */
    WS_REASON_MAX = 123,             /* bytes: a control frame has 125, the code takes 2 */
};

struct ws_events {
    /* Fills at most `len` bytes; returns how many, 0 for none now, -1 for never again. */
    ssize_t (*on_read)(void *data, void *ret_bytes, size_t len);

    /* A whole message, text or binary. */
    void (*on_message)(void *data, const char *text, size_t len);

    /* Control frames to be sent, whole. */
    void (*on_control)(void *data, const void *bytes, size_t len);
};

/* A client masks what it sends and gets frames without a mask; a server the other way round. */
enum ws_side { WS_SERVER, WS_CLIENT };

/* `message_max`: bytes of one message, of however many frames. */
struct ws *ws_new(enum ws_side side, const struct ws_events *events, void *data,
                  size_t message_max);
void ws_free(struct ws *ws);

enum ws_state {
    WS_OPEN,
    WS_CLOSED_BY_PEER, /* it sent a Close, and it is answered */
    WS_CLOSED_BY_US,   /* a Close was given to on_control */
    WS_BROKEN,         /* on_read said never again */
};

/* Reads until on_read has nothing, or the state is no longer WS_OPEN. on_message may call
 * ws_close() but not ws_free(). */
enum ws_state ws_read(struct ws *ws);

/* An empty ping, by way of on_control. */
void ws_ping(struct ws *ws);

/* A Close frame; nothing is read after it. `reason` may be NULL and is cut to WS_REASON_MAX. */
void ws_close(struct ws *ws, uint16_t code, const char *reason);

/* The code of the Close that was sent; 0 when none was, or one without a code. */
uint16_t ws_code_sent(const struct ws *ws);

/* The bytes before `len` bytes of text; returns how many. */
size_t ws_head(size_t len, uint8_t ret_head[WS_HEAD_MAX]);

/* The same for the side that connected, with a new random mask at its end, by which the text goes
 * out changed (RFC 6455, 5.3). */
size_t ws_head_masked(char *text, size_t len, uint8_t ret_head[WS_HEAD_MAX]);
