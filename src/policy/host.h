/* A host as people and programs write it, made into the one thing that it means: a name in lower case, or
 * an address. What has no meaning, or more than one, is refused, because what judges it and what connects
 * to it could read it differently: "0177.0.0.1", "127.1", "0x7f000001" and "2130706433" are loopback to one
 * reader, a name to the next, and 177.0.0.1 to a third.
 *
 *     a name       labels of letters, digits, "-" and "_", of at most 63 bytes, 253 together; one final dot is
 *                  cut; its last label is no number. A name that is not ASCII has to come in its "xn--" form
 *     an IPv4      four decimal numbers without leading zeros
 *     an IPv6      any writing of RFC 4291, also in brackets, without a zone; one that holds an IPv4 address
 *                  as ::ffff:a.b.c.d is that address
 *
 * Nothing here looks anything up. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NET_HOST_NAME_MAX = 253,
    NET_HOST_SIZE = 256, /* any host, with its NUL */
};

/* IPv4 addresses are ::ffff:a.b.c.d, in network order. */
struct net_address {
    uint8_t bytes[16];
};

enum net_host_kind { NET_HOST_IS_NAME, NET_HOST_IS_ADDRESS };

struct net_host {
    enum net_host_kind kind;
    struct net_address address; /* of NET_HOST_IS_ADDRESS */
    char text[NET_HOST_SIZE];   /* "example.com", "192.0.2.1", "2001:db8::1" */
};

/* `len` bytes, of which none may be NUL. ERR_INVALID says what is wrong with it. */
int net_host_parse(const char *text, size_t len, struct net_host *ret, struct err *err);

/* "HOST", "HOST:PORT", "[IPV6]:PORT", "IPV6"; without a port `*ret_port` is 0. */
int net_host_parse_port(const char *text, struct net_host *ret, uint16_t *ret_port,
                        struct err *err);

/* A decimal number from 1 to 65535. */
int net_port_parse(const char *text, uint16_t *ret, struct err *err);

/* "HOST:PORT", with brackets around an IPv6 address; "HOST" for port 0. Caller frees. */
char *net_host_format(const char *host, uint16_t port);

void net_host_from_address(const struct net_address *address, struct net_host *ret);
struct net_address net_address_v4(const uint8_t bytes[4]);
bool net_address_is_v4(const struct net_address *address);
bool net_address_equal(const struct net_address *a, const struct net_address *b);

/* What keeps the address from being one of the public internet, in a word: "loopback", "private",
 * "link-local", "multicast", "reserved", ... NULL: it is public. IPv6 addresses that lead to an
 * IPv4 one (v4-mapped, v4-compatible, 6to4, NAT64, ISATAP) are what that is. Static. */
const char *net_address_special(const struct net_address *address);

/* The IPv4 address that such an IPv6 one leads to; false: it leads to none, or is one itself. */
bool net_address_leads_to_v4(const struct net_address *address, struct net_address *ret);

/* A name that is the machine itself wherever it is asked: "localhost" and what lies below it, and
 * those that systems put into /etc/hosts for it. */
bool net_host_name_is_local(const char *name);

/* Such a name, or an address of loopback. */
bool net_host_is_loopback(const struct net_host *host);

/* --- patterns --- */

enum host_pattern_kind {
    HOST_PATTERN_EXACT,      /* "example.com", "192.0.2.1" */
    HOST_PATTERN_BELOW,      /* "*.example.com": with at least one label in front */
    HOST_PATTERN_WITH_BELOW, /* "**.example.com": itself, too */
    HOST_PATTERN_ANY,        /* "*": every name and address */
};

struct host_pattern {
    enum host_pattern_kind kind;
    struct net_host host; /* of all but HOST_PATTERN_ANY */
};

/* "PATTERN", "PATTERN:PORT"; wildcards stand in front of names alone. */
int host_pattern_parse(const char *text, struct host_pattern *ret, uint16_t *ret_port,
                       struct err *err);

/* As it is written; caller frees. */
char *host_pattern_format(const struct host_pattern *pattern, uint16_t port);

bool host_pattern_matches(const struct host_pattern *pattern, const struct net_host *host);
