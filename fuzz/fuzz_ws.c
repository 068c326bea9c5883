/* WebSocket frames up to messages. The first byte says on which side the reader is, and in how
 * large parts the rest arrives. Beside memory errors: no message is larger than the limit, none
 * comes after the end, what is sent is well-formed control frames, and the size of the parts
 * changes nothing. */
#include "fuzz.h"

#include "base/auto.h"
#include "rpc/message.h"
#include "rpc/transport/ws.h"

#include <stdlib.h>
#include <string.h>

enum { MESSAGE_MAX = 4096, CLIENT = 0x80, PART = 0x7f };

struct input {
    struct ws *ws;
    const uint8_t *data;
    size_t len;
    size_t part; /* bytes of one read */
    bool is_client;
    bool is_closed;
    unsigned messages;
    uint64_t sum; /* of messages, and of control frames without their masks */
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void add(struct input *input, uint8_t byte)
{
    input->sum = (input->sum ^ byte) * 0x100000001b3; /* FNV-1a */
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
    for (size_t i = 0; i < len; i++)
        add(input, (uint8_t)text[i]);
    rpc_message_parse(text, len, &message, &err);
    if (len == 5 && memcmp(text, "close", 5) == 0) {
        ws_close(input->ws, 1000, "bye");
        input->is_closed = true;
    }
}

/* Close or Pong, final, masked by a client only. */
static void on_control(void *data, const void *bytes, size_t len)
{
    struct input *input = data;
    const uint8_t *frame = bytes;
    size_t head_len = input->is_client ? 6 : 2;

    while (len) {
        size_t payload;

        check(len >= head_len && (frame[0] == 0x88 || frame[0] == 0x8a));
        check(!(frame[1] & 0x80) == !input->is_client);
        payload = frame[1] & 0x7f;
        check(payload <= 125 && len >= head_len + payload);
        add(input, frame[0]);
        for (size_t i = 0; i < payload; i++)
            add(input, frame[head_len + i] ^ (input->is_client ? frame[2 + i % 4] : 0));
        frame += head_len + payload;
        len -= head_len + payload;
    }
}

static const struct ws_events events = {on_read, on_message, on_control};

static struct input run(const uint8_t *data, size_t size, size_t part, bool is_client)
{
    struct input input = {.data = data, .len = size, .part = part, .is_client = is_client};

    input.ws = ws_new(is_client ? WS_CLIENT : WS_SERVER, &events, &input, MESSAGE_MAX);
    while (ws_read(input.ws) == WS_OPEN)
        ;
    input.is_closed = true;
    ws_read(input.ws);
    ws_free(input.ws);
    return input;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input parts;
    struct input whole;

    if (!size)
        return 0;
    parts = run(data + 1, size - 1, (data[0] & PART) + 1u, data[0] & CLIENT);
    whole = run(data + 1, size - 1, size, data[0] & CLIENT);
    check(parts.messages == whole.messages && parts.sum == whole.sum);
    return 0;
}
