/* Replies: the routes are a table; an upgrade is checked field by field in an order that tells a
 * client that may not come in nothing but that. Every reply but the upgrade closes the connection,
 * so that no body has to be understood.
 *
 * The client's handshake: what is sent is the least that RFC 6455 asks for, as Codex's client does
 * it: no extension, no subprotocol. What comes is believed only with the right accept value:
 * another server, or a cache, that says 101 to everything is not what we want to talk to. */
#include "rpc/transport/http.h"

#include "base/auto.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "rpc/transport/auth.h"

#include <arpa/inet.h>
#include <nettle/sha1.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>

/* Nothing but visible ASCII. */
static bool is_visible(const char *text)
{
    for (const char *c = text; *c; c++)
        if (*c <= ' ' || *c > '~')
            return false;
    return *text != '\0';
}

/* --- replies --- */

enum { KEY_LEN = 24, KEY_BYTES = 16 }; /* RFC 6455, 4.1: 16 bytes in base64 */
enum { HTTP_ACCEPT_SIZE = 29 };        /* 20 bytes in base64, and the NUL */

typedef struct http_reply http_route_fn(const struct http_head *head,
                                        const struct http_situation *situation);

static struct http_reply reply_refusal(int status, const char *text)
{
    return (struct http_reply){.status = status, .text = text, .is_refusal = true};
}

struct http_reply http_reply_text(int status, const char *text)
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
    return is_get(head) ? http_reply_text(200, NULL) : reply_method("GET,HEAD");
}

static bool is_allowed(const struct http_head *head, const struct http_situation *situation)
{
    return !situation->auth ||
           rpc_auth_allows(situation->auth, http_head_field(head, "authorization"),
                           situation->address);
}

static struct http_reply reply_metrics(const struct http_head *head,
                                       const struct http_situation *situation)
{
    if (!situation->has_metrics)
        return http_reply_text(404, NULL);
    if (!is_get(head))
        return reply_method("GET,HEAD");
    if (!is_allowed(head, situation))
        return reply_refusal(401, rpc_auth_refusal(situation->auth));
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

static struct http_reply reply_upgrade(const struct http_head *head,
                                       const struct http_situation *situation)
{
    const char *key = upgrade_key(head);
    const char *version = http_head_field(head, "sec-websocket-version");
    const char *length = http_head_field(head, "content-length");

    if (!str_eq(head->method, "GET"))
        return reply_method("GET");
    if (!is_allowed(head, situation))
        return reply_refusal(401, rpc_auth_refusal(situation->auth));
    if (head->minor != 1 || !http_head_has_word(head, "connection", "upgrade") ||
        !http_head_has_word(head, "upgrade", "websocket"))
        return http_reply_text(400,
                               "this is a WebSocket endpoint: Connection: upgrade and Upgrade: "
                               "websocket are missing");
    if (!version || !str_eq(version, "13"))
        return http_reply_text(400, "Sec-WebSocket-Version has to be 13");
    if (!key)
        return http_reply_text(400, "Sec-WebSocket-Key has to be 16 bytes in base64");
    if (http_head_field(head, "transfer-encoding") || (length && !str_eq(length, "0")))
        return http_reply_text(400, "an upgrade has no body");
    if (situation->is_full)
        return reply_refusal(503, "too many connections");
    return (struct http_reply){
        .status = 101, .page = HTTP_PAGE_UPGRADE, .key = key, .auth = situation->auth};
}

/* A page of a foreign name that was made to lead here (DNS rebinding) brings that name along. */
bool http_host_is_local(const char *host)
{
    bool is_v6 = *host == '[';
    size_t len = is_v6 ? strcspn(++host, "]") : strcspn(host, ":");
    char name[INET6_ADDRSTRLEN] = "";
    struct in6_addr ignored;

    if (len >= sizeof name || (is_v6 && !host[len]))
        return false;
    memcpy(name, host, len);
    return strcasecmp(name, "localhost") == 0 ||
           inet_pton(is_v6 ? AF_INET6 : AF_INET, name, &ignored) == 1;
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
    struct http_reply reply = http_reply_text(404, NULL);
    size_t len = strcspn(head->target, "?"); /* of the path */
    const char *host = http_head_field(head, "host");

    if (situation->is_loopback && host && !http_host_is_local(host))
        return reply_refusal(403, "the Host of a request to a loopback address has to be localhost "
                                  "or an IP address");
    if (http_head_field(head, "origin"))
        return reply_refusal(403, NULL);
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (strlen(routes[i].path) == len && strncmp(head->target, routes[i].path, len) == 0)
            reply = routes[i].reply(head, situation);
    reply.is_bodiless = str_eq(head->method, "HEAD");
    return reply;
}

const char *http_status_phrase(int status)
{
    static const struct {
        int status;
        const char *phrase;
    } phrases[] = {
        {101, "Switching Protocols"},
        {200, "OK"},
        {202, "Accepted"},
        {204, "No Content"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {431, "Request Header Fields Too Large"},
        {503, "Service Unavailable"},
    };

    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++)
        if (phrases[i].status == status)
            return phrases[i].phrase;
    return "";
}

/* IMF-fixdate of RFC 9110, 5.6.7; the program never calls setlocale(), so the names are English. */
void http_append_date(struct buf *ret)
{
    time_t now = (time_t)(clock_wall_ns() / CLOCK_NS_PER_S);
    struct tm utc;
    char text[64];

    if (gmtime_r(&now, &utc) && strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc))
        buf_appendf(ret, "date: %s\r\n", text);
}

/* The answer to a Sec-WebSocket-Key (RFC 6455, 4.2.2): SHA-1 of it and a constant. */
static void accept_of(const char *key, char ret[HTTP_ACCEPT_SIZE])
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
    char accept[HTTP_ACCEPT_SIZE];
    char proof[RPC_AUTH_PROOF_SIZE];

    buf_appendf(ret, "HTTP/1.1 %d %s\r\n", reply->status, http_status_phrase(reply->status));
    http_append_date(ret);
    if (reply->allow)
        buf_appendf(ret, "allow: %s\r\n", reply->allow);
    if (reply->page != HTTP_PAGE_UPGRADE) {
        append_body(reply, body, ret);
        return;
    }
    if (rpc_auth_prove(reply->auth, reply->key, proof))
        buf_appendf(ret, "cordon-proof: %s\r\n", proof);
    accept_of(reply->key, accept);
    buf_appendf(ret,
                "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: %s\r\n\r\n",
                accept);
}

/* --- the client's handshake --- */

void handshake_key(char ret[HANDSHAKE_KEY_SIZE])
{
    uint8_t bytes[16];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        abort(); /* Linux never returns less for so little */
    base64_encode(bytes, sizeof bytes, ret);
}

bool handshake_token_is_valid(const char *token)
{
    return is_visible(token) && strlen(token) <= HANDSHAKE_TOKEN_MAX;
}

void handshake_request(const char *url, const char *key, const struct handshake_secret *secret,
                       struct buf *ret)
{
    AUTO_FREE char *made = secret->user_token ? rpc_auth_sign(secret->user_token, url) : NULL;
    const char *token = made ? made : secret->token;

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

int handshake_check(char *text, size_t len, const char *key, const struct handshake_secret *secret,
                    struct err *err)
{
    struct http_head head;
    char accept[HTTP_ACCEPT_SIZE];
    const char *given;

    if (http_head_parse_reply(text, len, &head, err))
        return err_wrap(err, "this is no exec server");
    if (head.status != 101)
        return handshake_refused(head.status, err);
    if (secret->user_token &&
        !rpc_auth_is_proof(secret->user_token, key, http_head_field(&head, "cordon-proof")))
        return err_set(err, ERR_FORBIDDEN,
                       "who listens there does not know your token: it is no server of yours, or "
                       "one that was told not to ask for it (then say --auth-token-file none)");
    accept_of(key, accept);
    given = http_head_field(&head, "sec-websocket-accept");
    if (!given || !str_eq(given, accept) || !http_head_has_word(&head, "upgrade", "websocket") ||
        !http_head_has_word(&head, "connection", "upgrade"))
        return err_set(err, ERR_INVALID, "the server's WebSocket handshake is wrong");
    if (http_head_field(&head, "sec-websocket-extensions") ||
        http_head_field(&head, "sec-websocket-protocol"))
        return err_set(err, ERR_INVALID,
                       "the server chose a WebSocket extension or protocol that was not offered");
    return 0;
}
