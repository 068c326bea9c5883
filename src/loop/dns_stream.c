/* See dns_stream.h.
 *
 *     length of 16 bits | id, flags, four counts | question | answers: name, type, class, TTL, length, data | ...
 *
 * Names in the answer are stepped over: nothing follows what they point to, so there are no circles. */
#include "loop/dns_stream.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "loop/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    PREFIX = 2,
    HEAD = 12,
    FIXED = 10, /* type, class, TTL and length of a record */
    LABEL_MAX = 63,
    NAME_MAX_BYTES = 255,
    CLASS_IN = 1,
    POINTER = 0xc0,
    FLAGS_WANTED = 0x01, /* recursion, in the first byte of the flags */
    FLAG_ANSWER = 0x80,
    FLAG_TRUNCATED = 0x02,
    CODE = 0x0f, /* in the second */
    MESSAGE_MAX = 65535,
};

struct dns_stream {
    struct loop *loop;
    int fd;
    struct loop_watch *watch;
    uint16_t id;
    enum dns_stream_type type;
    struct buf out, in;
    dns_stream_fn *on_answer;
    void *data;
};

/* --- messages --- */

static uint16_t read16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

/* Where the name ends that begins at `at`; 0: nowhere. */
static size_t after_name(const uint8_t *message, size_t len, size_t at)
{
    while (at < len) {
        uint8_t label = message[at];

        if (label >= POINTER)
            return at + 2 <= len ? at + 2 : 0;
        if (label > LABEL_MAX)
            return 0;
        at += 1 + (size_t)label;
        if (!label)
            return at;
    }
    return 0;
}

int dns_stream_read(const uint8_t *message, size_t len, uint16_t id, enum dns_stream_type type,
                    uint8_t ret[DNS_STREAM_ADDRESSES_MAX * 16])
{
    const size_t size = type == DNS_STREAM_A ? 4 : 16;
    size_t at = HEAD;
    int count = 0;

    if (len < HEAD || read16(message) != id || !(message[2] & FLAG_ANSWER) ||
        message[2] & FLAG_TRUNCATED || message[3] & CODE || read16(message + 4) != 1)
        return -1;
    at = after_name(message, len, at) + 4; /* type and class of the question */
    for (unsigned left = read16(message + 6); left && count < DNS_STREAM_ADDRESSES_MAX; left--) {
        size_t record = at < HEAD + 5 ? 0 : after_name(message, len, at), data;

        if (!record || len - record < FIXED)
            return -1;
        data = read16(message + record + 8);
        at = record + FIXED + data;
        if (at > len)
            return -1;
        if (read16(message + record) == type && read16(message + record + 2) == CLASS_IN &&
            data == size)
            memcpy(ret + size * (size_t)count++, message + record + FIXED, size);
    }
    return count;
}

static bool write_question(struct dns_stream *stream, const char *name)
{
    uint8_t message[PREFIX + HEAD + NAME_MAX_BYTES + 4] = {0};
    size_t at = PREFIX + HEAD;

    if (strlen(name) > NAME_MAX_BYTES - 2)
        return false;
    message[2] = (uint8_t)(stream->id >> 8);
    message[3] = (uint8_t)stream->id;
    message[4] = FLAGS_WANTED;
    message[7] = 1; /* question */
    while (*name) {
        size_t label = strcspn(name, ".");

        if (!label || label > LABEL_MAX)
            return false;
        message[at++] = (uint8_t)label;
        memcpy(message + at, name, label);
        at += label;
        name += label + (name[label] == '.');
    }
    at += 2; /* the root, and the upper half of the type */
    message[at++] = (uint8_t)stream->type;
    message[at + 1] = CLASS_IN;
    at += 2;
    message[1] = (uint8_t)(at - PREFIX);
    message[0] = (uint8_t)((at - PREFIX) >> 8);
    return buf_append(&stream->out, message, at);
}

/* --- the connection --- */

void dns_stream_free(struct dns_stream *stream)
{
    if (!stream)
        return;
    loop_watch_free(stream->watch);
    if (stream->fd >= 0)
        close(stream->fd);
    buf_done(&stream->out);
    buf_done(&stream->in);
    free(stream);
}

static void finish(struct dns_stream *stream, int count, const uint8_t *addresses)
{
    dns_stream_fn *on_answer = stream->on_answer;
    void *data = stream->data;

    dns_stream_free(stream);
    on_answer(data, addresses, count);
}

static void send_question(struct dns_stream *stream)
{
    ssize_t len = send(stream->fd, stream->out.data, stream->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (len < 0 && errno != EAGAIN && errno != EINTR) {
        finish(stream, -1, NULL);
        return;
    }
    if (len > 0)
        buf_consume(&stream->out, (size_t)len);
    if (!stream->out.len)
        loop_watch_set(stream->watch, LOOP_READ);
}

static void take_answer(struct dns_stream *stream)
{
    uint8_t block[4096], addresses[DNS_STREAM_ADDRESSES_MAX * 16];
    ssize_t len = recv(stream->fd, block, sizeof block, MSG_DONTWAIT);
    const uint8_t *in;
    size_t wanted;

    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (len <= 0 || !buf_append(&stream->in, block, (size_t)len)) {
        finish(stream, -1, NULL);
        return;
    }
    in = (const uint8_t *)stream->in.data;
    wanted = stream->in.len < PREFIX ? MESSAGE_MAX : read16(in);
    if (stream->in.len >= PREFIX + wanted)
        finish(stream, dns_stream_read(in + PREFIX, wanted, stream->id, stream->type, addresses),
               addresses);
}

static void on_ready(void *data, int fd, unsigned ready)
{
    struct dns_stream *stream = data;

    if (stream->out.len)
        send_question(stream);
    else
        take_answer(stream);
}

struct dns_stream *dns_stream_new(struct loop *loop, const struct sockaddr *server,
                                  socklen_t server_len, const char *name, enum dns_stream_type type,
                                  dns_stream_fn *on_answer, void *data)
{
    struct dns_stream *stream = alloc_zero(1, sizeof *stream);
    struct err ignored;

    *stream = (struct dns_stream){.loop = loop, .type = type, .on_answer = on_answer, .data = data};
    buf_init(&stream->out, PREFIX + HEAD + NAME_MAX_BYTES + 4);
    buf_init(&stream->in, PREFIX + MESSAGE_MAX + 4096);
    stream->fd = socket(server->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (stream->fd >= 0 && getrandom(&stream->id, sizeof stream->id, GRND_NONBLOCK) > 0 &&
        write_question(stream, name) &&
        (connect(stream->fd, server, server_len) == 0 || errno == EINPROGRESS))
        stream->watch = loop_watch_new(loop, stream->fd, LOOP_WRITE, on_ready, stream, &ignored);
    if (stream->watch)
        return stream;
    dns_stream_free(stream);
    return NULL;
}
