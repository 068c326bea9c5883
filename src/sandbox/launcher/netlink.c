/* See netlink.h. Numbers from linux/netlink.h, rtnetlink.h, netfilter/nfnetlink.h and nf_tables.h: musl comes
 * without them. Headers and lengths are in the order of the host, what nf_tables compares and what it is told in
 * that of the network. */
#include "sandbox/launcher/netlink.h"

#include "proxy/proxy_format.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

enum { ERROR = 2 }; /* NLMSG_ERROR: the answer, with 0 as error when all is well */

enum { F_REQUEST = 1, F_ACK = 4, F_EXCL = 0x200, F_CREATE = 0x400, F_APPEND = 0x800 };

struct header {
    uint32_t len;
    uint16_t type;
    uint16_t flags;
    uint32_t number;
    uint32_t port;
};

static size_t aligned(size_t len)
{
    return (len + 3) & ~(size_t)3;
}

static void append(struct netlink_messages *to, const void *data, size_t len)
{
    if (aligned(len) > sizeof to->bytes - to->len)
        return; /* of what is counted in NETLINK_PORTS_MAX there is room */
    memset(to->bytes + to->len, 0, aligned(len));
    memcpy(to->bytes + to->len, data, len);
    to->len += aligned(len);
}

/* Begins a message; message_end() writes its length. */
static size_t message_begin(struct netlink_messages *to, uint16_t type, uint16_t flags)
{
    const size_t start = to->len;
    const struct header header = {
        .type = type, .flags = (uint16_t)(F_REQUEST | flags), .number = ++to->last};

    append(to, &header, sizeof header);
    return start;
}

static void message_end(struct netlink_messages *to, size_t start)
{
    const uint32_t len = (uint32_t)(to->len - start);

    memcpy(to->bytes + start, &len, sizeof len);
}

/* Attributes: 16 bits of length, padding left out, and 16 of kind. */
static void attribute(struct netlink_messages *to, uint16_t kind, const void *data, size_t len)
{
    const uint16_t head[2] = {(uint16_t)(sizeof head + len), kind};

    append(to, head, sizeof head);
    append(to, data, len);
}

static void attribute_text(struct netlink_messages *to, uint16_t kind, const char *text)
{
    attribute(to, kind, text, strlen(text) + 1);
}

static void attribute_number(struct netlink_messages *to, uint16_t kind, uint32_t number)
{
    const uint32_t value = htonl(number);

    attribute(to, kind, &value, sizeof value);
}

static size_t nest_begin(struct netlink_messages *to, uint16_t kind)
{
    const size_t start = to->len;

    attribute(to, kind | 0x8000 /* NLA_F_NESTED */, "", 0);
    return start;
}

static void nest_end(struct netlink_messages *to, size_t start)
{
    const uint16_t len = (uint16_t)(to->len - start);

    memcpy(to->bytes + start, &len, sizeof len);
}

/* --- routes --- */

enum {
    RTM_NEWROUTE = 24,
    RTA_OIF = 4,
    TABLE_LOCAL = 255,
    PROTOCOL_BOOT = 3,
    SCOPE_HOST = 254,
    TYPE_LOCAL = 2,
    LOOPBACK = 1, /* index of lo in every new network */
};

static void route(struct netlink_messages *to, uint8_t family)
{
    const size_t start = message_begin(to, RTM_NEWROUTE, F_ACK | F_CREATE | F_EXCL);
    const struct {
        uint8_t family, to_bits, from_bits, tos, table, protocol, scope, type;
        uint32_t flags;
    } message = {.family = family,
                 .table = TABLE_LOCAL,
                 .protocol = PROTOCOL_BOOT,
                 .scope = SCOPE_HOST,
                 .type = TYPE_LOCAL};
    const uint32_t device = LOOPBACK;

    append(to, &message, sizeof message);
    attribute(to, RTA_OIF, &device, sizeof device);
    message_end(to, start);
}

void netlink_routes(bool has_ip6, struct netlink_messages *ret)
{
    ret->len = ret->last = 0;
    route(ret, AF_INET);
    if (has_ip6)
        route(ret, AF_INET6);
}

/* --- nf_tables --- */

enum {
    BATCH_BEGIN = 16,
    BATCH_END = 17,
    NF_TABLES = 10,
    NEW_TABLE = 0,
    NEW_CHAIN = 3,
    NEW_RULE = 6
};

enum { OF_NO_FAMILY = 0, OF_INET = 1 }; /* NFPROTO_INET: IPv4 and IPv6 */

enum { HOOK_OUTPUT = 3, PRIORITY_NAT = -100 };

enum { REGISTER_VERDICT = 0, REGISTER = 1 };

enum { META_FAMILY = 15, META_PROTOCOL = 16 }; /* NFT_META_NFPROTO, NFT_META_L4PROTO */

enum { NETWORK_HEADER = 1, TRANSPORT_HEADER = 2 };

enum { PORT_OFFSET = 2, IP4_TO_OFFSET = 16, IP6_TO_OFFSET = 24 };

enum { VERDICT_RETURN = -5 };

enum { DNS_PORT = 53 };

static const char TABLE[] = "cordon";
static const char CHAIN[] = "output";

static size_t nf_begin(struct netlink_messages *to, uint16_t type, uint8_t family, uint16_t flags)
{
    const bool is_batch = type == BATCH_BEGIN || type == BATCH_END;
    const size_t start = message_begin(to, is_batch ? type : (NF_TABLES << 8 | type), flags);
    const struct {
        uint8_t family, version;
        uint16_t resource;
    } message = {.family = family, .resource = is_batch ? htons(NF_TABLES) : 0};

    append(to, &message, sizeof message);
    return start;
}

static void batch(struct netlink_messages *to, uint16_t type)
{
    message_end(to, nf_begin(to, type, OF_NO_FAMILY, 0));
}

static void table_and_chain(struct netlink_messages *to)
{
    size_t message = nf_begin(to, NEW_TABLE, OF_INET, F_CREATE | F_EXCL);
    size_t hook;

    attribute_text(to, 1 /* NFTA_TABLE_NAME */, TABLE);
    message_end(to, message);
    message = nf_begin(to, NEW_CHAIN, OF_INET, F_CREATE | F_EXCL);
    attribute_text(to, 1 /* NFTA_CHAIN_TABLE */, TABLE);
    attribute_text(to, 3 /* NFTA_CHAIN_NAME */, CHAIN);
    hook = nest_begin(to, 4 /* NFTA_CHAIN_HOOK */);
    attribute_number(to, 1 /* NFTA_HOOK_HOOKNUM */, HOOK_OUTPUT);
    attribute_number(to, 2 /* NFTA_HOOK_PRIORITY */, (uint32_t)PRIORITY_NAT);
    nest_end(to, hook);
    attribute_text(to, 7 /* NFTA_CHAIN_TYPE */, "nat");
    message_end(to, message);
}

struct rule {
    size_t message, expressions;
};

static struct rule rule_begin(struct netlink_messages *to)
{
    struct rule rule = {.message = nf_begin(to, NEW_RULE, OF_INET, F_CREATE | F_APPEND)};

    attribute_text(to, 1 /* NFTA_RULE_TABLE */, TABLE);
    attribute_text(to, 2 /* NFTA_RULE_CHAIN */, CHAIN);
    rule.expressions = nest_begin(to, 4 /* NFTA_RULE_EXPRESSIONS */);
    return rule;
}

static void rule_end(struct netlink_messages *to, struct rule rule)
{
    nest_end(to, rule.expressions);
    message_end(to, rule.message);
}

/* What is in the expression comes between the two. */
struct expression {
    size_t element, data;
};

static struct expression expression_begin(struct netlink_messages *to, const char *name)
{
    struct expression expression = {.element = nest_begin(to, 1 /* NFTA_LIST_ELEM */)};

    attribute_text(to, 1 /* NFTA_EXPR_NAME */, name);
    expression.data = nest_begin(to, 2 /* NFTA_EXPR_DATA */);
    return expression;
}

static void expression_end(struct netlink_messages *to, struct expression expression)
{
    nest_end(to, expression.data);
    nest_end(to, expression.element);
}

static void compare(struct netlink_messages *to, const void *value, size_t len)
{
    const struct expression expression = expression_begin(to, "cmp");
    size_t data;

    attribute_number(to, 1 /* NFTA_CMP_SREG */, REGISTER);
    attribute_number(to, 2 /* NFTA_CMP_OP */, 0 /* NFT_CMP_EQ */);
    data = nest_begin(to, 3 /* NFTA_CMP_DATA */);
    attribute(to, 1 /* NFTA_DATA_VALUE */, value, len);
    nest_end(to, data);
    expression_end(to, expression);
}

static void meta_is(struct netlink_messages *to, uint32_t key, uint8_t value)
{
    const struct expression expression = expression_begin(to, "meta");

    attribute_number(to, 1 /* NFTA_META_DREG */, REGISTER);
    attribute_number(to, 2 /* NFTA_META_KEY */, key);
    expression_end(to, expression);
    compare(to, &value, sizeof value);
}

static void packet_has(struct netlink_messages *to, const uint32_t where[2], const void *value,
                       size_t len)
{
    const struct expression expression = expression_begin(to, "payload");

    attribute_number(to, 1 /* NFTA_PAYLOAD_DREG */, REGISTER);
    attribute_number(to, 2 /* NFTA_PAYLOAD_BASE */, where[0]);
    attribute_number(to, 3 /* NFTA_PAYLOAD_OFFSET */, where[1]);
    attribute_number(to, 4 /* NFTA_PAYLOAD_LEN */, (uint32_t)len);
    expression_end(to, expression);
    compare(to, value, len);
}

static void redirect(struct netlink_messages *to, uint16_t port)
{
    const uint16_t value = htons(port);
    struct expression expression = expression_begin(to, "immediate");
    size_t data;

    attribute_number(to, 1 /* NFTA_IMMEDIATE_DREG */, REGISTER);
    data = nest_begin(to, 2 /* NFTA_IMMEDIATE_DATA */);
    attribute(to, 1 /* NFTA_DATA_VALUE */, &value, sizeof value);
    nest_end(to, data);
    expression_end(to, expression);
    expression = expression_begin(to, "redir");
    attribute_number(to, 1 /* NFTA_REDIR_REG_PROTO_MIN */, REGISTER);
    attribute_number(to, 3 /* NFTA_REDIR_FLAGS */, 2 /* NF_NAT_RANGE_PROTO_SPECIFIED */);
    expression_end(to, expression);
}

static void leave(struct netlink_messages *to)
{
    const struct expression expression = expression_begin(to, "immediate");
    size_t data, verdict;

    attribute_number(to, 1 /* NFTA_IMMEDIATE_DREG */, REGISTER_VERDICT);
    data = nest_begin(to, 2 /* NFTA_IMMEDIATE_DATA */);
    verdict = nest_begin(to, 2 /* NFTA_DATA_VERDICT */);
    attribute_number(to, 1 /* NFTA_VERDICT_CODE */, (uint32_t)VERDICT_RETURN);
    nest_end(to, verdict);
    nest_end(to, data);
    expression_end(to, expression);
}

/* `port` 0: every port. */
static void redirect_rule(struct netlink_messages *to, uint8_t protocol, uint16_t port,
                          uint16_t proxy)
{
    const struct rule rule = rule_begin(to);
    const uint16_t value = htons(port);

    meta_is(to, META_PROTOCOL, protocol);
    if (port)
        packet_has(to, (const uint32_t[]){TRANSPORT_HEADER, PORT_OFFSET}, &value, sizeof value);
    redirect(to, proxy);
    rule_end(to, rule);
}

static void own_rules(struct netlink_messages *to)
{
    const uint8_t ip4 = 127;
    const struct in6_addr ip6 = IN6ADDR_LOOPBACK_INIT;
    struct rule rule = rule_begin(to);

    meta_is(to, META_FAMILY, AF_INET);
    packet_has(to, (const uint32_t[]){NETWORK_HEADER, IP4_TO_OFFSET}, &ip4, sizeof ip4);
    leave(to);
    rule_end(to, rule);
    rule = rule_begin(to);
    meta_is(to, META_FAMILY, AF_INET6);
    packet_has(to, (const uint32_t[]){NETWORK_HEADER, IP6_TO_OFFSET}, &ip6, sizeof ip6);
    leave(to);
    rule_end(to, rule);
}

/* An answer is given to each message that fails, and to the last one when none does. */
static void ask_answer(struct netlink_messages *to, size_t message)
{
    struct header header;

    memcpy(&header, to->bytes + message, sizeof header);
    header.flags |= F_ACK;
    memcpy(to->bytes + message, &header, sizeof header);
}

void netlink_redirect(const uint16_t *ports, size_t count, struct netlink_messages *ret)
{
    uint32_t last;
    size_t message;

    ret->len = ret->last = 0;
    batch(ret, BATCH_BEGIN);
    table_and_chain(ret);
    for (size_t i = 0; i < count && i < NETLINK_PORTS_MAX; i++)
        redirect_rule(ret, IPPROTO_TCP, ports[i], PROXY_PORT);
    redirect_rule(ret, IPPROTO_UDP, DNS_PORT, PROXY_DNS_PORT);
    redirect_rule(ret, IPPROTO_TCP, DNS_PORT, PROXY_PORT);
    own_rules(ret);
    message = ret->len;
    redirect_rule(ret, IPPROTO_TCP, 0, PROXY_PORT);
    ask_answer(ret, message);
    last = ret->last;
    batch(ret, BATCH_END);
    ret->last = last;
}

/* --- answers --- */

enum netlink_state netlink_read(const void *packet, size_t len, uint32_t last, int *ret_error)
{
    const uint8_t *at = packet;
    struct header header, asked;
    int32_t error;

    *ret_error = EBADMSG;
    while (len) {
        if (len < sizeof header)
            return NETLINK_FAILED;
        memcpy(&header, at, sizeof header);
        if (header.len > len || header.type != ERROR ||
            header.len < sizeof header + sizeof error + sizeof asked)
            return NETLINK_FAILED;
        memcpy(&error, at + sizeof header, sizeof error);
        memcpy(&asked, at + sizeof header + sizeof error, sizeof asked);
        if (error > 0 || error <= -4096 /* MAX_ERRNO */)
            return NETLINK_FAILED;
        if (error) {
            *ret_error = -error;
            return NETLINK_FAILED;
        }
        if (asked.number == last) {
            *ret_error = 0;
            return NETLINK_DONE;
        }
        if (aligned(header.len) >= len)
            break;
        at += aligned(header.len);
        len -= aligned(header.len);
    }
    *ret_error = 0;
    return NETLINK_MORE;
}
