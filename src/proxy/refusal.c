/* See refusal.h. The body is the JSON of Codex's proxy, for CONNECT too: clients that show it show the message, which names
 * the rule, or the flag that would help. */
#include "proxy/refusal.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"
#include "proxy/connection.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char *status_text(int status)
{
    switch (status) {
    case 400:
        return "Bad Request";
    case 403:
        return "Forbidden";
    case 405:
        return "Method Not Allowed";
    case 408:
        return "Request Timeout";
    case 502:
        return "Bad Gateway";
    case 504:
        return "Gateway Timeout";
    default:
        return "Service Unavailable";
    }
}

/* What a person reads. */
static char *message_of(const struct connection *connection, const struct refusal *refusal)
{
    const struct target *target = &connection->target;
    const struct network_request request = {
        .host = &target->host, .port = target->port, .protocol = target->protocol};
    const struct network_decision decision = {
        .verdict = NETWORK_DENY, .reason = refusal->reason, .rule = refusal->rule};
    AUTO_FREE char *name = net_host_format(target->host.text, target->port);
    AUTO_FREE char *remedy = refusal->text ? NULL : network_policy_remedy(&request, &decision);

    if (refusal->text)
        return alloc_strf("Cordon: %s%s%s.", *target->host.text ? name : "",
                          *target->host.text ? ": " : "", refusal->text);
    return alloc_strf("Cordon refuses the connection to %s (%s).%s%s", name,
                      network_reason_word(refusal->reason), remedy ? " " : "",
                      remedy ? remedy : "");
}

static char *body_of(const struct connection *connection, const struct refusal *refusal, int status)
{
    const struct target *target = &connection->target;
    AUTO_FREE char *message = message_of(connection, refusal);
    AUTO_JSON json_t *json = json_pack(
        "{s:i, s:o, s:s, s:s, s:s, s:s, s:i, s:o, s:o}", "status", status, "host",
        json_lossy(target->host.text), "reason", network_reason_word(refusal->reason), "decision",
        "deny", "source",
        refusal->reason == NETWORK_POLICY_DENIED        ? "decider"
        : refusal->reason == NETWORK_METHOD_NOT_ALLOWED ? "mode_guard"
        : refusal->reason == NETWORK_REASON_NONE        ? "proxy_state"
                                                        : "baseline_policy",
        "protocol", network_protocol_words[target->protocol], "port", (int)target->port, "message",
        json_lossy(message), "rule", json_lossy(refusal->rule ? refusal->rule->origin : NULL));

    return json_dumps(json, JSON_COMPACT);
}

void refusal_write(const struct connection *connection, const struct refusal *refusal,
                   const char *method, struct buf *ret)
{
    int status = refusal->status ? refusal->status : 403;
    AUTO_FREE char *body = body_of(connection, refusal, status);
    const char *header = network_reason_header(refusal->reason);

    buf_appendf(ret, "HTTP/1.1 %d %s\r\n", status, status_text(status));
    if (*header)
        buf_appendf(ret, "x-proxy-error: %s\r\n", header);
    buf_appendf(ret,
                "Content-Type: application/json\r\nContent-Length: %zu\r\nConnection: close\r\n"
                "Cache-Control: no-store\r\n\r\n",
                body ? strlen(body) + 1 : 0);
    if (body && !(method && str_eq(method, "HEAD")))
        buf_appendf(ret, "%s\n", body);
}
