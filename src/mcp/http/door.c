/* See door.h. Browsers name the page that sends a request in Origin, and let no page change that. Pages of other
 * origins are refused, whatever they know; one of a local name with our own port comes from ourselves, or from
 * what stands in front of us. A page of a foreign name that was made to lead here (DNS rebinding) is known by
 * its Host, too. */
#include "mcp/http/door.h"

#include "base/http_message.h"
#include "base/str.h"
#include "rpc/transport/auth.h"
#include "rpc/transport/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

static struct door_answer refuse(int status, const char *text)
{
    return (struct door_answer){.status = status, .text = text};
}

static bool is_own_origin(const char *origin, const struct door_situation *situation)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    char text[64];

    for (size_t i = 0; situation->is_loopback && i < sizeof names / sizeof *names; i++) {
        snprintf(text, sizeof text, "http://%s:%u", names[i], situation->port);
        if (strcasecmp(origin, text) == 0)
            return true;
    }
    return false;
}

static bool has_foreign_origin(const struct http_head *head, const struct door_situation *situation)
{
    for (size_t i = 0; i < head->field_count; i++)
        if (http_is_same_field(head->fields[i].name, "Origin") &&
            !is_own_origin(head->fields[i].value, situation))
            return true;
    return false;
}

struct door_answer door_lets_in(const struct http_request *request,
                                const struct door_situation *situation)
{
    const struct http_head *head = &request->head;

    if (situation->is_loopback && request->host && !http_host_is_local(request->host))
        return refuse(403, "the Host of a request to a loopback address has to be localhost or an "
                           "IP address");
    if (request->authority && (!request->host || !str_eq(request->authority, request->host)))
        return refuse(400, "the target of the request and its Host are not the same");
    if (has_foreign_origin(head, situation))
        return refuse(403,
                      "the Origin of a request has to be http://localhost, http://127.0.0.1 or "
                      "http://[::1] with the port of this server, on a loopback address: pages "
                      "of other origins are not let in");
    if (situation->auth && !rpc_auth_allows(situation->auth, http_head_field(head, "Authorization"),
                                            situation->address))
        return refuse(401, rpc_auth_refusal(situation->auth));
    return refuse(0, NULL);
}

/* --- what is asked for --- */

static bool is_path(const char *path)
{
    size_t len = strcspn(path, "?");

    return len == sizeof DOOR_PATH - 1 && strncmp(path, DOOR_PATH, len) == 0;
}

/* One media type of a list, up to its parameters, in any case. */
static bool is_type(const char *item, const char *type)
{
    size_t len = strlen(type);

    return strncasecmp(item, type, len) == 0 && (!item[len] || strchr(" \t;,", item[len]));
}

/* Whether a client that says this in its Accept fields takes `type`, of which `any` is the range. */
static bool accepts(const struct http_head *head, const char *type, const char *any)
{
    for (size_t i = 0; i < head->field_count; i++) {
        const char *item = head->fields[i].value;

        if (strcasecmp(head->fields[i].name, "Accept") != 0)
            continue;
        for (; *item; item += strcspn(item, ",")) {
            item += strspn(item, " \t,");
            if (is_type(item, type) || is_type(item, any) || is_type(item, "*/*"))
                return true;
        }
    }
    return false;
}

/* "application/json", in UTF-8 as RFC 8259 has it if it says so. */
static bool is_json(const char *type)
{
    const char *charset = type ? strcasestr(type, "charset=") : NULL;

    if (!type || !is_type(type, "application/json"))
        return false;
    if (!charset)
        return true;
    charset += strlen("charset=");
    return strncasecmp(charset + (*charset == '"'), "utf-8", strlen("utf-8")) == 0;
}

static struct door_answer judge_post(const struct http_request *request)
{
    const struct http_head *head = &request->head;
    const char *expects = http_head_field(head, "Expect");

    if (!is_json(http_head_field(head, "Content-Type")))
        return refuse(415, "the Content-Type of a POST has to be application/json");
    if (http_head_field(head, "Content-Encoding"))
        return refuse(415, "a POST is taken as it is, without a Content-Encoding");
    if (!accepts(head, "application/json", "application/*") ||
        !accepts(head, "text/event-stream", "text/*"))
        return refuse(406, "the Accept of a POST has to have both: application/json, "
                           "text/event-stream");
    if (expects && strcasecmp(expects, "100-continue") != 0)
        return refuse(417, "Expect can be 100-continue alone");
    return refuse(0, NULL);
}

struct door_answer door_routes(const struct http_request *request)
{
    const struct http_head *head = &request->head;

    if ((request->form != HTTP_ORIGIN && request->form != HTTP_ABSOLUTE) || !is_path(request->path))
        return refuse(404, "there is nothing here: the path of MCP is " DOOR_PATH);
    if (str_eq(head->method, "POST"))
        return judge_post(request);
    if (!str_eq(head->method, "GET") && !str_eq(head->method, "DELETE"))
        return (struct door_answer){.status = 405,
                                    .text = "POST sends a message, GET listens, DELETE ends a "
                                            "session",
                                    .allow = "GET, POST, DELETE"};
    if (request->body.kind != HTTP_BODY_NONE)
        return refuse(400, "only a POST has a body");
    if (str_eq(head->method, "GET") && !accepts(head, "text/event-stream", "text/*"))
        return refuse(406,
                      "the Accept of a GET has to have text/event-stream; messages are sent by "
                      "POST");
    return refuse(0, NULL);
}

/* --- sessions --- */

void door_session_id(char ret[DOOR_SESSION_ID_SIZE])
{
    uint8_t bytes[(DOOR_SESSION_ID_SIZE - 1) / 2];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        abort(); /* Linux never returns less for so little */
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}
