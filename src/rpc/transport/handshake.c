/* What is sent is the least that RFC 6455 asks for, as the original's client does it: no extension,
 * no subprotocol (spec/exec-server.md 1.1). What comes is believed only with the right accept
 * value: another server, or a cache, that says 101 to everything is not what we want to talk to. */
#include "rpc/transport/handshake.h"

#include "base/base64.h"
#include "base/buf.h"
#include "base/str.h"
#include "rpc/transport/http_head.h"
#include "rpc/transport/http_reply.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void handshake_key(char ret[HANDSHAKE_KEY_SIZE])
{
    uint8_t bytes[16];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        abort(); /* Linux never returns less for so little */
    base64_encode(bytes, sizeof bytes, ret);
}

bool handshake_token_is_valid(const char *token)
{
    size_t len = strlen(token);

    for (size_t i = 0; i < len; i++)
        if (token[i] <= ' ' || token[i] > '~')
            return false;
    return len > 0 && len <= HANDSHAKE_TOKEN_MAX;
}

void handshake_request(const char *url, const char *key, const char *token, struct buf *ret)
{
    buf_appendf(ret,
                "GET / HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n",
                url + strlen("ws://"), key);
    if (token)
        buf_appendf(ret, "Authorization: Bearer %s\r\n", token);
    buf_append_str(ret, "\r\n");
}

static int handshake_refused(int status, struct err *err)
{
    switch (status) {
    case 401:
        return err_set(err, ERR_FORBIDDEN, "the server does not let us in without the right token");
    case 403:
        return err_set(err, ERR_FORBIDDEN, "the server forbids it (HTTP status 403)");
    case 503:
        return err_set(err, ERR_LIMIT, "the server has too many connections");
    default:
        return err_set(err, ERR_INVALID, "this is no exec server: it answers with HTTP status %d",
                       status);
    }
}

int handshake_check(char *text, size_t len, const char *key, struct err *err)
{
    struct http_head head;
    char accept[HTTP_ACCEPT_SIZE];
    const char *given;

    if (http_head_parse_reply(text, len, &head, err))
        return err_wrap(err, "this is no exec server");
    if (head.status != 101)
        return handshake_refused(head.status, err);
    http_accept_of(key, accept);
    given = http_head_field(&head, "sec-websocket-accept");
    if (!given || !str_eq(given, accept) || !http_head_has_word(&head, "upgrade", "websocket") ||
        !http_head_has_word(&head, "connection", "upgrade"))
        return err_set(err, ERR_INVALID, "the server's WebSocket handshake is wrong");
    if (http_head_field(&head, "sec-websocket-extensions") ||
        http_head_field(&head, "sec-websocket-protocol"))
        return err_set(err, ERR_INVALID,
                       "the server chose a WebSocket extension or protocol that nobody offered");
    return 0;
}
