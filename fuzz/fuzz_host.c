/* Hosts and patterns as people and programs write them. Beside memory errors: what comes out means itself,
 * and no reader of addresses takes another address from the text than we do. */
#include "fuzz.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "policy/host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* inet_aton() takes octal, hexadecimal, and less than four parts. */
static void check_readers(const char *text, const struct net_host *host)
{
    struct in_addr number;

    if (!inet_aton(text, &number))
        return;
    check(host->kind == NET_HOST_IS_ADDRESS && net_address_is_v4(&host->address));
    check(memcmp(host->address.bytes + 12, &number, 4) == 0);
}

static void check_host(const char *text, size_t len)
{
    struct net_host host;
    struct net_host again;
    struct err err;

    if (net_host_parse(text, len, &host, &err))
        return;
    check(memchr(text, '\0', len) == NULL);
    check(net_host_parse(host.text, strlen(host.text), &again, &err) == 0);
    check(host.kind == again.kind && strcmp(host.text, again.text) == 0);
    check(host.kind == NET_HOST_IS_NAME || net_address_equal(&host.address, &again.address));
    check_readers(host.text, &host);
    if (host.kind == NET_HOST_IS_ADDRESS)
        net_address_special(&host.address);
}

static void check_pattern(const char *text)
{
    struct host_pattern pattern;
    struct host_pattern again;
    struct err err;
    uint16_t port;
    uint16_t port_again;
    AUTO_FREE char *out = NULL;

    if (host_pattern_parse(text, &pattern, &port, &err))
        return;
    out = host_pattern_format(&pattern, port);
    check(host_pattern_parse(out, &again, &port_again, &err) == 0);
    check(port == port_again && pattern.kind == again.kind);
    check(strcmp(pattern.host.text, again.host.text) == 0);
    if (pattern.kind != HOST_PATTERN_ANY)
        check(host_pattern_matches(&pattern, &pattern.host) ==
              (pattern.kind != HOST_PATTERN_BELOW));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FREE char *text = alloc_strn((const char *)data, size);
    struct net_host host;
    struct err err;
    uint16_t port;

    check_host((const char *)data, size);
    check_pattern(text);
    if (net_host_parse_port(text, &host, &port, &err) == 0) {
        AUTO_FREE char *out = net_host_format(host.text, port);
        struct net_host again;
        uint16_t port_again;

        check(net_host_parse_port(out, &again, &port_again, &err) == 0);
        check(port == port_again && strcmp(host.text, again.text) == 0);
        if (!port)
            check_readers(text, &host);
    }
    return 0;
}
