/* Unlike a Unix socket, TCP does not say who is at the other end. But both ends of a connection
 * within a host are sockets of its kernel, which can be asked for the other one (sock_diag(7)): to
 * whom it belongs, and its inode number, by which lookout.h finds the processes that have it open.
 */
#include "rpc/transport/tcp_peer_lookup.h"

#include "base/auto.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

struct question {
    struct nlmsghdr head;
    struct inet_diag_req_v2 body;
};

struct reply {
    struct nlmsghdr head;
    union {
        struct inet_diag_msg body;
        struct nlmsgerr failure;
        char rest[1024]; /* attributes, which nobody asked for */
    };
};

/* Of either family as the diag wants it: port and address in network order. An IPv4 address in IPv6
 * clothes (a socket that takes both) is one. */
static void fill_end(const union address *from, uint16_t *ret_port, uint32_t ret_address[4])
{
    bool is_v6 = from->any.sa_family == AF_INET6;

    *ret_port = is_v6 ? from->v6.sin6_port : from->v4.sin_port;
    if (!is_v6)
        ret_address[0] = from->v4.sin_addr.s_addr;
    else if (IN6_IS_ADDR_V4MAPPED(&from->v6.sin6_addr))
        memcpy(ret_address, &from->v6.sin6_addr.s6_addr[12], 4);
    else
        memcpy(ret_address, &from->v6.sin6_addr, 16);
}

/* The question for the other end, where `there` is here and `here` is there. */
static bool question_init(struct question *question, int fd)
{
    struct inet_diag_sockid *id = &question->body.id;
    union address here = {0};
    union address there = {0};
    socklen_t len = sizeof here;
    bool is_v4;

    if (getsockname(fd, &here.any, &len))
        return false;
    len = sizeof there;
    if (getpeername(fd, &there.any, &len))
        return false;
    is_v4 = there.any.sa_family == AF_INET || IN6_IS_ADDR_V4MAPPED(&there.v6.sin6_addr);
    *question = (struct question){
        .head = {.nlmsg_len = sizeof *question,
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST},
        .body = {.sdiag_family = is_v4 ? AF_INET : AF_INET6,
                 .sdiag_protocol = IPPROTO_TCP,
                 .idiag_states = UINT32_MAX},
    };
    fill_end(&there, &id->idiag_sport, id->idiag_src);
    fill_end(&here, &id->idiag_dport, id->idiag_dst);
    id->idiag_cookie[0] = id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    return true;
}

/* The kernel answers within the call that asks. Where no connection fits it may find a listener. */
static bool reply_get(const struct question *question, struct inet_diag_msg *ret)
{
    const struct inet_diag_sockid *asked = &question->body.id;
    AUTO_CLOSE int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    struct reply reply;
    ssize_t len;

    if (fd < 0 || send(fd, question, sizeof *question, 0) != (ssize_t)sizeof *question)
        return false;
    len = recv(fd, &reply, sizeof reply, MSG_DONTWAIT);
    if (len < (ssize_t)NLMSG_LENGTH(sizeof reply.body) ||
        reply.head.nlmsg_type != SOCK_DIAG_BY_FAMILY || reply.body.idiag_state == TCP_LISTEN ||
        reply.body.id.idiag_sport != asked->idiag_sport ||
        reply.body.id.idiag_dport != asked->idiag_dport)
        return false;
    *ret = reply.body;
    return true;
}

bool tcp_owner_find(int fd, struct tcp_owner *ret)
{
    struct question question;
    struct inet_diag_msg reply;

    if (!question_init(&question, fd) || !reply_get(&question, &reply) || !reply.idiag_inode)
        return false;
    *ret = (struct tcp_owner){.uid = reply.idiag_uid, .inode = reply.idiag_inode};
    return true;
}
