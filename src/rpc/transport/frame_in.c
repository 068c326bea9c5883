/* See frame_in.h. */
#include "rpc/transport/frame_in.h"

#include <string.h>

enum { MASKED = 0x80, LENGTH = 0x7f, OPCODE = 0x0f, RESERVED = 0x70, OPCODE_BINARY = 2 };

static size_t length_bytes(const struct frame_in *frame)
{
    size_t code = frame->head[1] & LENGTH;

    return code == 127 ? 8 : code == 126 ? 2 : 0;
}

static bool is_masked(const struct frame_in *frame)
{
    return frame->head[1] & MASKED;
}

size_t frame_in_missing(const struct frame_in *frame)
{
    if (frame->head_len < 2)
        return 2 - frame->head_len;
    return 2 + length_bytes(frame) + (is_masked(frame) ? WS_MASK_LEN : 0) - frame->head_len;
}

unsigned frame_in_opcode(const struct frame_in *frame)
{
    return frame->head[0] & OPCODE;
}

/* A length has to be written in as few bytes as possible. */
static bool is_plain(const struct frame_in *frame, bool from_client)
{
    uint64_t least = length_bytes(frame) == 8 ? UINT16_MAX + 1 : length_bytes(frame) ? 126 : 0;

    return frame_in_opcode(frame) <= OPCODE_BINARY && !(frame->head[0] & RESERVED) &&
           frame->payload >= least && frame->payload <= WS_FRAME_MAX &&
           is_masked(frame) == from_client;
}

void frame_in_begin(struct frame_in *frame, bool from_client)
{
    size_t bytes = length_bytes(frame);

    frame->payload = bytes ? 0 : frame->head[1] & LENGTH;
    for (size_t i = 0; i < bytes; i++)
        frame->payload = frame->payload << 8 | frame->head[2 + i];
    frame->left = frame->payload;
    frame->is_plain = is_plain(frame, from_client);
    frame->is_begun = true;
}

/* Eight bytes at a time: the mask has four. */
void frame_in_unmask(const struct frame_in *frame, char *bytes, size_t len)
{
    size_t mask = frame->head_len - WS_MASK_LEN;
    uint64_t offset = frame->payload - frame->left;
    uint8_t turned[8];
    uint64_t word;
    size_t i = 0;

    if (!is_masked(frame))
        return;
    for (size_t k = 0; k < sizeof turned; k++)
        turned[k] = frame->head[mask + (offset + k) % WS_MASK_LEN];
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

void frame_in_empty(struct frame_in *frame)
{
    frame->head[1] &= MASKED;
    frame->head_len = 2;
    if (is_masked(frame)) {
        memset(frame->head + 2, 0, WS_MASK_LEN);
        frame->head_len += WS_MASK_LEN;
    }
}

size_t frame_in_show(struct frame_in *frame, uint8_t *ret_bytes, size_t len)
{
    size_t left = frame->head_len - frame->shown;

    if (len > left)
        len = left;
    memcpy(ret_bytes, frame->head + frame->shown, len);
    frame->shown += len;
    return len;
}
