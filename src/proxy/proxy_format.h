/* What goes between the proxy (cordon-proxy, a program of its own), the host that starts it
 * (sandbox/linux/proxy_link.c) and the launcher. They are built together, so there is no versioning
 * beyond a number that has to match.
 *
 *     host     -> proxy   over PROXY_CONTROL_FD (SOCK_SEQPACKET): one packet for each command,
 *                         struct proxy_hello, with the descriptors of enum proxy_descriptor
 *     launcher -> proxy   over the command's channel (SOCK_SEQPACKET, an end of which the proxy got with
 *                         the hello): struct proxy_order with the listeners in the command's network
 *     host     -> proxy   over the same channel: struct proxy_order, such as the answer to a question
 *     proxy    -> host    over the same channel: struct proxy_fact, one a packet
 *
 * When the host shuts its end of the channel down, or closes it, the command is over: the proxy closes all that
 * it has open for it, tells what it has counted (PROXY_FACT_MORE), and closes its end, for which the host may
 * wait. When the proxy ends, so does every connection, and nothing leaves any more.
 *
 * A fact is in the channel before the program that it is about hears anything (NXDOMAIN, a reset, a byte), so
 * that the host has it when the program has ended.
 *
 * The policy is a sealed anonymous file: the JSON of network_policy_to_proxy(). Where it has TLS ended, the third descriptor is the
 * control socket of a cordon-tls (tls/tls_format.h), which all commands of the host share.
 *
 * The proxy is started with PROXY_CONTROL_FD and /dev/null as 0, 1 and 2, without capabilities, with
 * no_new_privs, with all signals blocked, where the host is root as user and group PROXY_NOBODY (if there is such a user) without further
 * groups, and with those variables of the host's environment that name proxies (those that end in _PROXY, in upper or lower
 * case). It ends when the control socket and every command's channel have ended.
 */
#pragma once

#include <stdint.h>

#define PROXY_PROGRAM "cordon-proxy"

enum {
    PROXY_MAGIC = 0x59585043,
    PROXY_VERSION = 1,
    PROXY_CONTROL_FD = 3,
    PROXY_MAX_BYTES = 1 << 20, /* of a policy */
    PROXY_NOBODY = 65534,
};

/* In the command's network. Below 1024, where a command cannot bind. */
enum {
    PROXY_PORT = 1008, /* TCP on [::], IPv4 too: all that is redirected, and explicit clients */
    PROXY_DNS_PORT =
        1009, /* UDP on 127.0.0.1 and [::1]; PROXY_HELLO_LED: port 53 at every address */
};

/* PROXY_HELLO_LED: the guard connects to PROXY_PORT at the address that is meant, and sends ahead this byte and the port that is
 * meant, in the order of the network. No explicit client begins so. */
enum { PROXY_LED = 0, PROXY_LED_BYTES = 3 };

enum proxy_descriptor {
    PROXY_FD_CHANNEL,
    PROXY_FD_POLICY,
    PROXY_FD_TLS, /* may be missing */
    PROXY_FDS
};

enum proxy_hello_flag {
    PROXY_HELLO_ASKS = 1,   /* somebody answers: hold what no rule is about */
    PROXY_HELLO_TRACES = 2, /* tell what is done, too */
    PROXY_HELLO_LED = 4,    /* nothing redirects the command's connections: PROXY_LED */
};

struct proxy_hello {
    uint32_t magic;
    uint32_t version;
    uint32_t flags; /* enum proxy_hello_flag */
};

enum proxy_order_kind {
    PROXY_ORDER_LISTENERS, /* of the launcher, with enum proxy_listener. Where the host has no IPv6 the last one is
                              missing, and the first one is of IPv4 */
    PROXY_ORDER_ANSWER, /* to the question `id`: `number` is 1 for yes, which lasts as long as the command */
    PROXY_ORDER_PUBLISH, /* with enum proxy_way_in: who connects there is led to the port `number` of the command's
                            own localhost. One that knows of the command no more than this has no other order */
};

enum proxy_listener {
    PROXY_LISTENER_TCP,
    PROXY_LISTENER_DNS4,
    PROXY_LISTENER_DNS6,
    PROXY_LISTENERS
};

/* SOCKETS: as plan_format.h of the launcher says; that of the first order counts for all. */
enum proxy_way_in { PROXY_WAY_IN_LISTENER, PROXY_WAY_IN_SOCKETS, PROXY_WAYS_IN };

struct proxy_order {
    uint32_t magic;
    uint32_t kind;
    uint64_t id;
    uint32_t number;
    uint32_t reserved;
};

enum proxy_fact_kind {
    PROXY_FACT_DENIED = 1,
    PROXY_FACT_ASKED,     /* held until the question `id` is answered */
    PROXY_FACT_WITHDRAWN, /* nobody waits for the answer to `id` any more */
    PROXY_FACT_DONE,      /* PROXY_HELLO_TRACES */
    PROXY_FACT_MORE,      /* `count` more were refused, not told one by one */
    PROXY_FACT_FAILED,    /* it was let through, and there is no server: `reason` */
};

enum { PROXY_FACTS_MAX = 64, PROXY_HOST_MAX = 256, PROXY_REASON_MAX = 256, PROXY_RULE_MAX = 256 };

/* The strings are NUL-terminated and as policy/network_policy.h has them. */
struct proxy_fact {
    uint32_t kind;
    uint32_t count;
    uint64_t id;
    uint64_t time_ns;    /* CLOCK_MONOTONIC */
    uint32_t protocol;   /* enum network_protocol */
    uint16_t port;       /* asked for; 0: a name was looked up */
    uint16_t local_port; /* from which the command connected; 0: not known */
    uint32_t is_look_up;
    uint32_t reserved;
    uint8_t meant
        [16]; /* the address that the command connected to (SO_ORIGINAL_DST), IPv4 as ::ffff:a.b.c.d; zero: not
                          known. By it, or for what came by UDP by `local_port`, the host finds the program */
    char host[PROXY_HOST_MAX]; /* the name or address that the program meant */
    char reason
        [PROXY_REASON_MAX]; /* "not_allowed", ..., or what limit was hit or why it failed, in words */
    char rule[PROXY_RULE_MAX]; /* origin of the rule that decided; "": none is about it */
};
