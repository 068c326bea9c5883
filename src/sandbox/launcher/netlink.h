/* Netlink messages that lead all of a new network to the proxy (proxy/proxy_format.h), and the kernel's
 * answers to them. Pure: the bytes depend on the ports alone.
 *
 *     ip route add local default dev lo;  ip -6 route add local default dev lo
 *     table inet cordon { chain output { type nat hook output priority -100
 *         tcp dport PORT redirect to :PROXY_PORT         for each port of the host's loopback that is let in
 *         udp dport 53 redirect to :PROXY_DNS_PORT
 *         tcp dport 53 redirect to :PROXY_PORT
 *         ip daddr 127.0.0.0/8 return
 *         ip6 daddr ::1 return
 *         meta l4proto tcp redirect to :PROXY_PORT } }
 *
 * So every address is one of this machine, whatever resolver is asked is the proxy, and what is neither TCP nor
 * a question to a resolver finds nobody listening. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NETLINK_PORTS_MAX = 64,
    NETLINK_BYTES_MAX = 32 << 10, /* of all messages */
};

struct netlink_messages {
    uint8_t bytes[NETLINK_BYTES_MAX] __attribute__((aligned(4)));
    size_t len;
    uint32_t last; /* number of the message whose answer is the last one */
};

/* For NETLINK_ROUTE. */
void netlink_routes(bool has_ip6, struct netlink_messages *ret);

/* For NETLINK_NETFILTER: one transaction. At most NETLINK_PORTS_MAX ports, others are left out. */
void netlink_redirect(const uint16_t *ports, size_t count, struct netlink_messages *ret);

enum netlink_state { NETLINK_MORE, NETLINK_DONE, NETLINK_FAILED };

/* What a packet of answers says; FAILED with the errno of the first refusal, EBADMSG when it is none that a kernel gives. */
enum netlink_state netlink_read(const void *packet, size_t len, uint32_t last, int *ret_error);
