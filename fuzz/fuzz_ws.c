/* WebSocket frames up to messages. The first byte says in how large parts the rest arrives. Beside
 * memory errors: no message is larger than the limit, none comes after the end, and nothing is read
 * beyond the frame that is being read. */
#include "fuzz.h"

#include "base/auto.h"
#include "rpc/message.h"
#include "rpc/transport/ws.h"

#include <stdlib.h>
#include <string.h>

enum { MESSAGE_MAX = 4096 };

struct input {
    struct ws *ws;
    const uint8_t *data;
    size_t len;
    size_t part; /* bytes of one read */
    bool is_closed;
    unsigned messages;
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

static ssize_t on_read(void *data, void *ret_bytes, size_t len)
{
    struct input *input = data;

    if (!input->len)
        return -1;
    if (len > input->part)
        len = input->part;
    if (len > input->len)
        len = input->len;
    memcpy(ret_bytes, input->data, len);
    input->data += len;
    input->len -= len;
    return (ssize_t)len;
}

/* A text of "close" closes, as an owner may in the middle of everything. */
static void on_message(void *data, const char *text, size_t len)
{
    struct input *input = data;
    AUTO(rpc_message_done) struct rpc_message message = {0};
    struct err err;

    check(!input->is_closed && len <= MESSAGE_MAX);
    input->messages++;
    rpc_message_parse(text, len, &message, &err);
    if (len == 5 && memcmp(text, "close", 5) == 0) {
        ws_close(input->ws, 1000, "bye");
        input->is_closed = true;
    }
}

static void on_control(void *data, const void *bytes, size_t len)
{
    const uint8_t *frame = bytes;

    check(len >= 2);
    check(frame[0] == 0x88 || frame[0] == 0x8a); /* Close or Pong, final, not masked */
    check(!(frame[1] & 0x80));
}

static const struct ws_events events = {on_read, on_message, on_control};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input;

    if (!size)
        return 0;
    input = (struct input){.data = data + 1, .len = size - 1, .part = data[0] + 1u};
    input.ws = ws_new(&events, &input, MESSAGE_MAX);
    while (ws_read(input.ws) == WS_OPEN)
        ;
    input.is_closed = true;
    ws_read(input.ws);
    ws_free(input.ws);
    return 0;
}
