/* See network.h. The kernel answers a netlink message before send(2) returns, so nothing here waits.
 *
 * The listeners are made before there is a plan, and numbered above what the plan's descriptors take. Their ports lie
 * below 1024, where the command cannot bind, and nothing else may share them. */
#include "sandbox/launcher/network.h"

#include "base/auto.h"
#include "base/pass.h"
#include "proxy/proxy_format.h"
#include "sandbox/launcher/netlink.h"
#include "sandbox/launcher/plan_format.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* linux/netlink.h */
enum { K_NETLINK_ROUTE = 0, K_NETLINK_NETFILTER = 12 };

enum { K_IPV6_FREEBIND = 78 }; /* linux/in6.h */

enum { DNS_PORT = 53 };

enum { FIRST_SPARE_FD = 16, BACKLOG = 4096, ANSWER_MAX = 8192 };

static int listeners[PROXY_LISTENERS] = {-1, -1, -1};

static struct netlink_messages messages; /* too large for the stack of a small program */

/* -1 with errno: of the first message that the kernel refused. */
static int netlink_do(int protocol)
{
    AUTO_CLOSE int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    uint8_t answer[ANSWER_MAX];
    enum netlink_state state = NETLINK_MORE;
    int error = 0;
    ssize_t len;

    if (fd < 0 || send(fd, messages.bytes, messages.len, 0) != (ssize_t)messages.len)
        return -1;
    while (state == NETLINK_MORE) {
        len = recv(fd, answer, sizeof answer, MSG_DONTWAIT);
        if (len < 0)
            return -1;
        state = netlink_read(answer, (size_t)len, messages.last, &error);
    }
    errno = error;
    return state == NETLINK_DONE ? 0 : -1;
}

static size_t ports_read(const char *text, uint16_t ret[NETLINK_PORTS_MAX])
{
    size_t count = 0;
    char *end;

    for (; *text && count < NETLINK_PORTS_MAX; text = *end == ',' ? end + 1 : end) {
        ret[count++] = (uint16_t)strtoul(text, &end, 10);
        if (end == text)
            break;
    }
    return count;
}

union address {
    struct sockaddr any;
    struct sockaddr_in ip4;
    struct sockaddr_in6 ip6;
};

/* A descriptor, -1 with errno. TCP that is bound to :: takes IPv4, too; of UDP each family has its own. */
static int listen_at(const union address *address, int type)
{
    const bool is_ip6 = address->any.sa_family == AF_INET6;
    AUTO_CLOSE int fd = socket(address->any.sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 ||
        (is_ip6 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){type == SOCK_DGRAM}, sizeof(int))) ||
        bind(fd, &address->any, is_ip6 ? sizeof address->ip6 : sizeof address->ip4) ||
        (type == SOCK_STREAM && listen(fd, BACKLOG)))
        return -1;
    return fcntl(fd, F_DUPFD_CLOEXEC, FIRST_SPARE_FD);
}

/* Where the host has switched IPv6 off there is no such socket, or no such address. */
static bool has_ip6(void)
{
    const union address dns = {.ip6 = {.sin6_family = AF_INET6,
                                       .sin6_port = htons(PROXY_DNS_PORT),
                                       .sin6_addr = IN6ADDR_LOOPBACK_INIT}};

    listeners[PROXY_LISTENER_DNS6] = listen_at(&dns, SOCK_DGRAM);
    return listeners[PROXY_LISTENER_DNS6] >= 0;
}

/* Where nothing is redirected, the resolver is at every address, and answers from the one that was asked. */
static int listen_everywhere(bool is_ip6, struct err *err)
{
    const union address ip6 = {.ip6 = {.sin6_family = AF_INET6, .sin6_port = htons(DNS_PORT)}};
    const union address ip4 = {.ip4 = {.sin_family = AF_INET, .sin_port = htons(DNS_PORT)}};
    const int on = 1;
    int fd;

    if (is_ip6) {
        close(listeners[PROXY_LISTENER_DNS6]);
        fd = listeners[PROXY_LISTENER_DNS6] = listen_at(&ip6, SOCK_DGRAM);
        if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on) ||
            setsockopt(fd, IPPROTO_IPV6, K_IPV6_FREEBIND, &on, sizeof on))
            return err_sys(err, "making the resolver of the command's network (IPv6)");
    }
    fd = listeners[PROXY_LISTENER_DNS4] = listen_at(&ip4, SOCK_DGRAM);
    if (fd < 0 || setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on))
        return err_sys(err, "making the resolver of the command's network");
    return 0;
}

static int listen_all(bool is_ip6, bool redirects, struct err *err)
{
    const union address tcp6 = {.ip6 = {.sin6_family = AF_INET6, .sin6_port = htons(PROXY_PORT)}};
    const union address tcp4 = {.ip4 = {.sin_family = AF_INET, .sin_port = htons(PROXY_PORT)}};
    const union address dns = {.ip4 = {.sin_family = AF_INET,
                                       .sin_port = htons(PROXY_DNS_PORT),
                                       .sin_addr = {htonl(INADDR_LOOPBACK)}}};

    listeners[PROXY_LISTENER_TCP] = listen_at(is_ip6 ? &tcp6 : &tcp4, SOCK_STREAM);
    if (listeners[PROXY_LISTENER_TCP] < 0)
        return err_sys(err, "listening in the command's network");
    if (!redirects)
        return listen_everywhere(is_ip6, err);
    listeners[PROXY_LISTENER_DNS4] = listen_at(&dns, SOCK_DGRAM);
    if (listeners[PROXY_LISTENER_DNS4] < 0)
        return err_sys(err, "listening in the command's network");
    return 0;
}

int network_lead(const char *ports, uint32_t *ret_op, struct err *err)
{
    const bool is_ip6 = has_ip6(), redirects = strcmp(ports, PLAN_NO_REDIRECT) != 0;
    uint16_t numbers[NETLINK_PORTS_MAX];

    netlink_routes(is_ip6, &messages);
    if (netlink_do(K_NETLINK_ROUTE))
        return err_sys(err, "making every address one of the command's network");
    if (listen_all(is_ip6, redirects, err))
        return -1;
    *ret_op = PLAN_REDIRECT;
    if (!redirects)
        return 0;
    netlink_redirect(numbers, ports_read(ports, numbers), &messages);
    if (netlink_do(K_NETLINK_NETFILTER))
        return err_sys(err, "nf_tables and nf_nat of the kernel (modules nft_redir, nf_nat)");
    return 0;
}

int network_hand_over(int channel, struct err *err)
{
    const struct proxy_order order = {.magic = PROXY_MAGIC, .kind = PROXY_ORDER_LISTENERS};
    const size_t count = listeners[PROXY_LISTENER_DNS6] < 0 ? PROXY_LISTENER_DNS6 : PROXY_LISTENERS;

    if (pass_send(channel, &order, sizeof order, listeners, count) && errno != EPIPE &&
        errno != ECONNRESET)
        return err_sys(err, "handing the command's network to the proxy");
    pass_close(listeners, count);
    return 0;
}
