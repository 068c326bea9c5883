/* See upstream.h. Names are not looked up here when they are reached through another proxy: that one does it, and hosts
 * behind such a proxy often cannot. So it also judges what their addresses are. */
#include "proxy/upstream.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { USUAL_PORT = 80, AUTHORIZATION_MAX = 1024 };

/* "user:password", with %XX for what cannot stand in a URL. */
static char *authorization(const char *text, size_t len)
{
    char plain[AUTHORIZATION_MAX], hex[3] = "";
    size_t count = 0;
    AUTO_FREE char *encoded = NULL;

    if (len >= sizeof plain)
        return NULL;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '%' && i + 2 < len) {
            memcpy(hex, text + i + 1, 2);
            plain[count++] = (char)strtoul(hex, NULL, 16);
            i += 2;
        } else {
            plain[count++] = text[i];
        }
    }
    encoded = alloc_zero(base64_encoded_len(count) + 1, 1);
    base64_encode(plain, count, encoded);
    return alloc_strf("Basic %s", encoded);
}

/* Something else than a URL of an HTTP proxy is none. */
static void read_url(const char *url, struct upstream *ret)
{
    AUTO_FREE char *authority = NULL;
    const char *at;
    struct err ignored;
    size_t len;

    if (strncasecmp(url, "http://", 7) == 0)
        url += 7;
    else if (strstr(url, "://"))
        return;
    len = strcspn(url, "/?#");
    at = memrchr(url, '@', len);
    authority = at ? alloc_strn(at + 1, len - (size_t)(at + 1 - url)) : alloc_strn(url, len);
    if (net_host_parse_port(authority, &ret->host, &ret->port, &ignored)) {
        ret->port = 0;
        return;
    }
    if (!ret->port)
        ret->port = USUAL_PORT;
    if (at)
        ret->authorization = authorization(url, (size_t)(at - url));
}

/* The first that is there and not empty. */
static const char *variable(const char *lower, const char *upper)
{
    const char *value = getenv(lower);

    if (!value || !*value)
        value = getenv(upper);
    return value && *value ? value : NULL;
}

void upstreams_read(struct upstreams *ret)
{
    const char *all = variable("all_proxy", "ALL_PROXY");
    const char *http = variable("http_proxy", "HTTP_PROXY");
    const char *https = variable("https_proxy", "HTTPS_PROXY");

    *ret = (struct upstreams){.without = variable("no_proxy", "NO_PROXY")};
    if (http || all)
        read_url(http ? http : all, &ret->http);
    if (https || all)
        read_url(https ? https : all, &ret->other);
}

void upstreams_done(struct upstreams *upstreams)
{
    free(upstreams->http.authorization);
    free(upstreams->other.authorization);
}

/* An entry of no_proxy: "*", a name and all below it, with or without a dot in front, an address, each perhaps with a
 * port. */
static bool entry_fits(const char *entry, size_t len, const struct net_host *host, uint16_t port)
{
    AUTO_FREE char *text = NULL;
    struct net_host named;
    struct err ignored;
    uint16_t named_port;
    size_t host_len = strlen(host->text), name_len;

    if (len == 1 && *entry == '*')
        return true;
    for (; len && (*entry == '.' || *entry == '*'); len--)
        entry++;
    text = alloc_strn(entry, len);
    if (!len || net_host_parse_port(text, &named, &named_port, &ignored) ||
        (named_port && port && named_port != port) || named.kind != host->kind)
        return false;
    if (str_eq(named.text, host->text))
        return true;
    name_len = strlen(named.text);
    return host->kind == NET_HOST_IS_NAME && host_len > name_len &&
           host->text[host_len - name_len - 1] == '.' && str_ends(host->text, named.text);
}

static bool is_without(const struct upstreams *upstreams, const struct net_host *host,
                       uint16_t port)
{
    const char *at = upstreams->without ? upstreams->without : "";

    while (*(at += strspn(at, ", \t"))) {
        size_t len = strcspn(at, ", \t");

        if (entry_fits(at, len, host, port))
            return true;
        at += len;
    }
    return false;
}

const struct upstream *upstream_for(const struct upstreams *upstreams,
                                    const struct network_policy *policy,
                                    const struct net_host *host, uint16_t port,
                                    enum network_protocol protocol)
{
    const struct upstream *upstream =
        protocol == NETWORK_HTTP ? &upstreams->http : &upstreams->other;
    bool is_local = host->kind == NET_HOST_IS_NAME ? net_host_name_is_local(host->text)
                                                   : net_address_special(&host->address) != NULL;

    if (!port && !upstream->port)
        upstream = &upstreams->http;
    if (!upstream->port || policy->no_upstream_proxy || is_local ||
        is_without(upstreams, host, port))
        return NULL;
    return upstream;
}
