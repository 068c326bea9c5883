/* The routes are a table; an upgrade is checked field by field in an order that tells somebody who
 * may not come in nothing but that. Every reply but the upgrade closes the connection, so that no
 * body has to be understood. */
#include "rpc/transport/http_reply.h"

#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "rpc/transport/auth.h"
#include "rpc/transport/http_head.h"

#include <nettle/sha1.h>
#include <string.h>
#include <time.h>

enum { KEY_LEN = 24, KEY_BYTES = 16 }; /* RFC 6455, 4.1: 16 bytes in base64 */

typedef struct http_reply http_route_fn(const struct http_head *head,
                                        const struct http_situation *situation);

static struct http_reply reply_status(int status)
{
    return (struct http_reply){.status = status};
}

static struct http_reply reply_refusal(int status, const char *text)
{
    return (struct http_reply){.status = status, .text = text, .is_refusal = true};
}

struct http_reply http_reply_error(int status, const char *text)
{
    return (struct http_reply){.status = status, .text = text};
}

static bool is_get(const struct http_head *head)
{
    return str_eq(head->method, "GET") || str_eq(head->method, "HEAD");
}

static struct http_reply reply_method(const char *allow)
{
    return (struct http_reply){.status = 405, .allow = allow};
}

static struct http_reply reply_health(const struct http_head *head,
                                      const struct http_situation *situation)
{
    return is_get(head) ? reply_status(200) : reply_method("GET,HEAD");
}

static bool is_allowed(const struct http_head *head, const struct http_situation *situation)
{
    return !situation->auth ||
           rpc_auth_allows(situation->auth, http_head_field(head, "authorization"));
}

static struct http_reply reply_metrics(const struct http_head *head,
                                       const struct http_situation *situation)
{
    if (!situation->has_metrics)
        return reply_status(404);
    if (!is_get(head))
        return reply_method("GET,HEAD");
    if (!is_allowed(head, situation))
        return reply_refusal(401, "unauthorized");
    return (struct http_reply){.status = 200, .page = HTTP_PAGE_METRICS};
}

/* The peer's nonce, which has to be 16 bytes in base64; NULL when it is not. */
static const char *upgrade_key(const struct http_head *head)
{
    const char *key = http_head_field(head, "sec-websocket-key");
    char nonce[KEY_LEN];
    struct err err;

    if (!key || strlen(key) != KEY_LEN || base64_decoded_len(key, KEY_LEN) != KEY_BYTES ||
        base64_decode(key, KEY_LEN, nonce, &err))
        return NULL;
    return key;
}

static bool has_body(const struct http_head *head)
{
    const char *length = http_head_field(head, "content-length");

    return http_head_field(head, "transfer-encoding") || (length && !str_eq(length, "0"));
}

static struct http_reply reply_upgrade(const struct http_head *head,
                                       const struct http_situation *situation)
{
    const char *key = upgrade_key(head);
    const char *version = http_head_field(head, "sec-websocket-version");

    if (!str_eq(head->method, "GET"))
        return reply_method("GET");
    if (!is_allowed(head, situation))
        return reply_refusal(401, "unauthorized");
    if (head->minor != 1 || !http_head_has_word(head, "connection", "upgrade") ||
        !http_head_has_word(head, "upgrade", "websocket"))
        return http_reply_error(400,
                                "this is a WebSocket endpoint: Connection: upgrade and Upgrade: "
                                "websocket are missing");
    if (!version || !str_eq(version, "13"))
        return http_reply_error(400, "Sec-WebSocket-Version has to be 13");
    if (!key)
        return http_reply_error(400, "Sec-WebSocket-Key has to be 16 bytes in base64");
    if (has_body(head))
        return http_reply_error(400, "an upgrade has no body");
    if (situation->is_full)
        return reply_refusal(503, "too many connections");
    return (struct http_reply){.status = 101, .page = HTTP_PAGE_UPGRADE, .key = key};
}

/* The path, up to a query. */
static bool is_path(const struct http_head *head, const char *path)
{
    size_t len = strcspn(head->target, "?");

    return strlen(path) == len && strncmp(head->target, path, len) == 0;
}

struct http_reply http_reply_to(const struct http_head *head,
                                const struct http_situation *situation)
{
    static const struct {
        const char *path;
        http_route_fn *reply;
    } routes[] = {
        {"/", reply_upgrade},
        {"/readyz", reply_health},
        {"/healthz", reply_health},
        {"/metrics", reply_metrics},
    };
    struct http_reply reply = reply_status(404);

    if (http_head_field(head, "origin"))
        return reply_refusal(403, NULL);
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (is_path(head, routes[i].path))
            reply = routes[i].reply(head, situation);
    reply.is_bodiless = str_eq(head->method, "HEAD");
    return reply;
}

static const char *status_phrase(int status)
{
    static const struct {
        int status;
        const char *phrase;
    } phrases[] = {
        {101, "Switching Protocols"},
        {200, "OK"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {431, "Request Header Fields Too Large"},
        {503, "Service Unavailable"},
    };

    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++)
        if (phrases[i].status == status)
            return phrases[i].phrase;
    return "";
}

/* IMF-fixdate of RFC 9110, 5.6.7; the program never calls setlocale(), so the names are English. */
static void append_date(struct buf *ret)
{
    time_t now = (time_t)(clock_wall_ns() / CLOCK_NS_PER_S);
    struct tm utc;
    char text[64];

    if (gmtime_r(&now, &utc) && strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc))
        buf_appendf(ret, "date: %s\r\n", text);
}

void http_accept_of(const char *key, char ret[HTTP_ACCEPT_SIZE])
{
    static const char constant[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    uint8_t digest[SHA1_DIGEST_SIZE];
    struct sha1_ctx sha1;

    sha1_init(&sha1);
    sha1_update(&sha1, strlen(key), (const uint8_t *)key);
    sha1_update(&sha1, sizeof constant - 1, (const uint8_t *)constant);
    sha1_digest(&sha1, sizeof digest, digest);
    base64_encode(digest, sizeof digest, ret);
}

static void append_accept(const char *key, struct buf *ret)
{
    char text[HTTP_ACCEPT_SIZE];

    http_accept_of(key, text);
    buf_appendf(ret, "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: %s\r\n",
                text);
}

static void append_body(const struct http_reply *reply, const struct buf *body, struct buf *ret)
{
    bool is_metrics = reply->page == HTTP_PAGE_METRICS;
    const char *text = is_metrics ? body->data : reply->text;
    size_t len = is_metrics ? body->len : strlen(text ? text : "");

    if (len) /* the type: Prometheus, "text-based format", version 0.0.4 */
        buf_appendf(ret, "content-type: text/plain; %scharset=utf-8\r\n",
                    is_metrics ? "version=0.0.4; " : "");
    buf_appendf(ret, "content-length: %zu\r\nconnection: close\r\n\r\n", len);
    if (len && !reply->is_bodiless)
        buf_append(ret, text, len);
}

void http_reply_write(const struct http_reply *reply, const struct buf *body, struct buf *ret)
{
    buf_appendf(ret, "HTTP/1.1 %d %s\r\n", reply->status, status_phrase(reply->status));
    append_date(ret);
    if (reply->allow)
        buf_appendf(ret, "allow: %s\r\n", reply->allow);
    if (reply->page != HTTP_PAGE_UPGRADE) {
        append_body(reply, body, ret);
        return;
    }
    append_accept(reply->key, ret);
    buf_append_str(ret, "\r\n");
}
