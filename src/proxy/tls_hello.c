/* The message may come in several records, so it is put together first; every length in it has to fit exactly into
 * the one around it. What a server could read differently than we do (two names, an extension twice) is refused. */
#include "proxy/tls_hello.h"

#include <string.h>

enum {
    RECORD_FIRST = 20, /* of the kinds */
    RECORD_HANDSHAKE = 22,
    RECORD_LAST = 24,
    RECORD_HEAD = 5,
    RECORD_MAX = 16384,
    MESSAGE_CLIENT_HELLO = 1,
    MESSAGE_HEAD = 4,
    RANDOM_BYTES = 32,
    SESSION_MAX = 32,
    EXTENSION_SERVER_NAME = 0,
    NAME_HOST = 0,
    RECORDS_MAX = 64, /* of one message; more only waste our time */
};

/* Bytes that are still to be read; after a read that was too long all that follow fail. */
struct reader {
    const uint8_t *at;
    size_t left;
    bool is_bad;
};

static const uint8_t *take(struct reader *reader, size_t len)
{
    const uint8_t *at = reader->at;

    if (reader->is_bad || len > reader->left) {
        reader->is_bad = true;
        return NULL;
    }
    reader->at += len;
    reader->left -= len;
    return at;
}

/* Of `bytes` bytes, most significant first; 0 when there are not as many. */
static size_t take_number(struct reader *reader, size_t bytes)
{
    const uint8_t *at = take(reader, bytes);
    size_t value = 0;

    for (size_t i = 0; at && i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}

/* What lies behind its own length, of `bytes` bytes. */
static struct reader take_part(struct reader *reader, size_t bytes)
{
    size_t len = take_number(reader, bytes);
    const uint8_t *at = take(reader, len);

    return (struct reader){.at = at, .left = at ? len : 0, .is_bad = at == NULL};
}

/* server_name of RFC 6066, 3: of all kinds of names there is one. */
static bool read_server_name(struct reader extension, struct tls_hello *ret)
{
    struct reader list = take_part(&extension, 2);
    size_t kind = take_number(&list, 1);
    struct reader name = take_part(&list, 2);

    if (extension.is_bad || list.is_bad || name.is_bad || extension.left || list.left ||
        kind != NAME_HOST || !name.left || name.left >= sizeof ret->name)
        return false;
    for (size_t i = 0; i < name.left; i++)
        if (name.at[i] <= ' ' || name.at[i] >= 0x7f)
            return false;
    memcpy(ret->name, name.at, name.left);
    ret->name[name.left] = '\0';
    return true;
}

static bool read_extensions(struct reader extensions, struct tls_hello *ret)
{
    bool has_name = false;

    while (extensions.left) {
        size_t kind = take_number(&extensions, 2);
        struct reader extension = take_part(&extensions, 2);

        if (extensions.is_bad || extension.is_bad)
            return false;
        if (kind != EXTENSION_SERVER_NAME)
            continue;
        if (has_name || !read_server_name(extension, ret))
            return false;
        has_name = true;
    }
    return true;
}

static bool read_hello(struct reader hello, struct tls_hello *ret)
{
    struct reader session, suites, compressions, extensions;

    take_number(&hello, 2); /* the version, which says nothing any more */
    take(&hello, RANDOM_BYTES);
    session = take_part(&hello, 1);
    suites = take_part(&hello, 2);
    compressions = take_part(&hello, 1);
    if (hello.is_bad || session.left > SESSION_MAX || !suites.left || suites.left % 2 ||
        !compressions.left)
        return false;
    if (!hello.left) /* before there were extensions */
        return true;
    extensions = take_part(&hello, 2);
    return !extensions.is_bad && !hello.left && read_extensions(extensions, ret);
}

/* Of one record, from `*at` on, as far as it is there: what it carries. No client begins with one of another kind, but
 * servers forgive a warning before the first message: its name is not to be hidden by that. */
static enum tls_step next_record(const uint8_t *bytes, size_t len, size_t *at, struct reader *ret)
{
    const uint8_t *head = bytes + *at;
    size_t left = len - *at, size;

    if ((left > 0 && (head[0] < RECORD_FIRST || head[0] > RECORD_LAST)) ||
        (left > 1 && head[1] != 3))
        return *at ? TLS_BAD : TLS_NONE;
    if (left > 1 && head[0] != RECORD_HANDSHAKE)
        return TLS_BAD;
    if (left < RECORD_HEAD)
        return TLS_MORE;
    size = (size_t)head[3] << 8 | head[4];
    if (!size || size > RECORD_MAX)
        return TLS_BAD;
    *ret = (struct reader){.at = head + RECORD_HEAD,
                           .left = size < left - RECORD_HEAD ? size : left - RECORD_HEAD};
    *at += RECORD_HEAD + ret->left;
    return ret->left == size ? TLS_WHOLE : TLS_MORE;
}

/* All bytes of the message, its head included; 0: not known yet. */
static size_t message_bytes(const uint8_t *message, size_t len)
{
    return len < MESSAGE_HEAD
               ? 0
               : MESSAGE_HEAD + ((size_t)message[1] << 16 | (size_t)message[2] << 8 | message[3]);
}

enum tls_step tls_hello_read(const uint8_t *bytes, size_t len, struct tls_hello *ret)
{
    uint8_t message[MESSAGE_HEAD + TLS_HELLO_MAX];
    size_t have = 0, at = 0;

    *ret = (struct tls_hello){.name = ""};
    for (int records = 0; records < RECORDS_MAX; records++) {
        struct reader record = {0};
        enum tls_step step = next_record(bytes, len, &at, &record);
        size_t wanted, room = sizeof message - have;

        if (step == TLS_NONE || step == TLS_BAD)
            return step;
        if (record.left)
            memcpy(message + have, record.at, record.left < room ? record.left : room);
        have += record.left < room ? record.left : room;
        if (have && message[0] != MESSAGE_CLIENT_HELLO)
            return TLS_BAD;
        wanted = message_bytes(message, have);
        if (wanted > sizeof message)
            return TLS_BAD;
        if (wanted && have >= wanted)
            return read_hello(
                       (struct reader){.at = message + MESSAGE_HEAD, .left = wanted - MESSAGE_HEAD},
                       ret)
                       ? TLS_WHOLE
                       : TLS_BAD;
        if (step == TLS_MORE)
            return TLS_MORE;
    }
    return TLS_BAD;
}
