/* See publication.h. */
#include "policy/publication.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"
#include "base/strv.h"

#include <stdlib.h>
#include <string.h>

/* Below it takes a capability (ip_unprivileged_port_start of a new network). What is there is the proxy's. */
enum { FIRST_PORT = 1024 };

static int say_form(const char *text, struct err *err)
{
    return err_set(err, ERR_INVALID,
                   "\"%s\" is not [ADDR:]HOSTPORT:PORT, as in 8080:3000 or [::1]:8080:3000", text);
}

static int read_host_port(const char *text, uint16_t *ret, struct err *err)
{
    *ret = 0;
    return str_eq(text, "0") ? 0 : net_port_parse(text, ret, err);
}

static int read_address(char *text, struct net_address *ret, struct err *err)
{
    const size_t len = strlen(text);
    const bool has_brackets = len > 2 && text[0] == '[' && text[len - 1] == ']';
    struct net_host host;

    if (has_brackets)
        text[len - 1] = '\0';
    if (net_host_parse(text + has_brackets, strlen(text + has_brackets), &host, err))
        return -1;
    if (host.kind != NET_HOST_IS_ADDRESS || (!net_address_is_v4(&host.address) && !has_brackets))
        return err_set(err, ERR_INVALID, "\"%s\" is no address; 127.0.0.1 or [::1] is one",
                       text + has_brackets);
    *ret = host.address;
    return 0;
}

int publication_parse(const char *text, struct publication *ret, struct err *err)
{
    static const uint8_t loopback[4] = {127, 0, 0, 1};
    AUTO_FREE char *copy = alloc_str(text);
    struct publication publication = {.address = net_address_v4(loopback)};
    char *port = strrchr(copy, ':');
    char *host_port;

    if (!port)
        return say_form(text, err);
    *port++ = '\0';
    host_port = strrchr(copy, ':');
    if (host_port)
        *host_port++ = '\0';
    if (read_host_port(host_port ? host_port : copy, &publication.host_port, err) ||
        net_port_parse(port, &publication.port, err) ||
        (host_port && read_address(copy, &publication.address, err))) {
        const struct err why = *err;

        return err_set(
            err, ERR_INVALID,
            "%s: \"%s\" should be [ADDR:]HOSTPORT:PORT, as in 8080:3000 or [::1]:8080:3000",
            why.msg, text);
    }
    if (publication.port < FIRST_PORT)
        return err_set(err, ERR_INVALID,
                       "%s: inside of a sandbox no command can have a port below %d", text,
                       FIRST_PORT);
    *ret = publication;
    return 0;
}

char *publication_format(const struct publication *publication)
{
    struct net_host host;

    net_host_from_address(&publication->address, &host);
    return alloc_strf(net_address_is_v4(&publication->address) ? "%s:%u:%u" : "[%s]:%u:%u",
                      host.text, publication->host_port, publication->port);
}

static bool is_same(const struct publication *a, const struct publication *b)
{
    return net_address_equal(&a->address, &b->address) && a->host_port == b->host_port &&
           a->port == b->port;
}

int publications_add(struct publications *list, const struct publication *publication,
                     struct err *err)
{
    for (size_t i = 0; i < list->len; i++)
        if (is_same(&list->items[i], publication))
            return 0;
    if (list->len == PUBLICATIONS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d published ports", PUBLICATIONS_MAX);
    list->items[list->len++] = *publication;
    return 0;
}

int publications_merge(struct publications *list, const struct publications *from, struct err *err)
{
    for (size_t i = 0; i < from->len; i++)
        if (publications_add(list, &from->items[i], err))
            return -1;
    return 0;
}

bool publications_equal(const struct publications *a, const struct publications *b)
{
    for (size_t i = 0; i < a->len && i < b->len; i++)
        if (!is_same(&a->items[i], &b->items[i]))
            return false;
    return a->len == b->len;
}

int publications_read(const struct json_at *at, struct publications *ret, struct err *err)
{
    size_t len;

    if (json_at_list(at, &len, err))
        return -1;
    for (size_t i = 0; i < len; i++) {
        struct json_at item = json_at_item(at, i);
        struct publication publication;
        const char *text;
        struct err why;

        if (json_at_string(&item, &text, err))
            return -1;
        if (publication_parse(text, &publication, &why) ||
            publications_add(ret, &publication, &why))
            return json_at_fail(&item, err, "%s", why.msg);
    }
    return 0;
}

void publications_format(const struct publications *list, struct strv *ret)
{
    for (size_t i = 0; i < list->len; i++)
        strv_push_take(ret, publication_format(&list->items[i]));
}

json_t *publications_to_json(const struct publications *list)
{
    AUTO(strv_done) struct strv texts = {0};

    publications_format(list, &texts);
    return json_lossy_list(strv_view(&texts));
}
