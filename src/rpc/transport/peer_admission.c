/* Without a token to tell them by, the processes that are let in are those that could do by
 * themselves what we do for them: this user's and root's, and no command of Cordon's, which could
 * leave its sandbox by starting another one. A process that cannot be identified is refused. (Of
 * root's processes others cannot see what is open.)
 *
 * A Unix socket says which process connected. TCP does not; but both ends of a connection within a
 * host are sockets of its kernel, which can be asked for the other one (sock_diag(7)): its user,
 * and its inode number. To find the processes that have that inode open takes a search of all of
 * them (socket_holders.h), which is made in small steps, one in a round of the loop, so that
 * connected clients go on meanwhile. However many wait, one search serves them all: those that were
 * there when it began. The others wait for the next one. A socket that could not be found is
 * searched for once more, since a process may hand its connection on to another, as servers and
 * their workers do.
 *
 * A request may be withdrawn while it waits; the search goes by inodes and knows nothing of it. */
#include "rpc/transport/peer_admission.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "loop/loop.h"
#include "rpc/transport/socket_holders.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SEARCHES_MAX = 2 };

/* --- the other end of a TCP connection --- */

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
        char rest[1024]; /* attributes, which were not asked for */
    };
};

/* Of either family as the diag wants it: port and address in network order. An IPv4-mapped
 * IPv6 address (of a socket that takes both) counts as IPv4. */
static void end_fill(const union address *from, uint16_t *ret_port, uint32_t ret_address[4])
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

/* Asks for the other end, whose own address is our peer address and the other way round. */
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
    end_fill(&there, &id->idiag_sport, id->idiag_src);
    end_fill(&here, &id->idiag_dport, id->idiag_dst);
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

/* `fd`: our end, connected. false when no process has the other end open any more, when it is not
 * on this host, or when the kernel does not tell. The inode is never 0. */
static bool tcp_peer_lookup(int fd, uid_t *ret_uid, uint32_t *ret_inode)
{
    struct question question;
    struct inet_diag_msg reply;

    if (!question_init(&question, fd) || !reply_get(&question, &reply) || !reply.idiag_inode)
        return false;
    *ret_uid = reply.idiag_uid;
    *ret_inode = reply.idiag_inode;
    return true;
}

/* --- requests --- */

static void admission_decide(struct admission_request *request, enum holders_verdict verdict)
{
    request->searches++;
    if (verdict == HOLDERS_NOT_FOUND && request->searches < SEARCHES_MAX) {
        request->state = ADMISSION_WAITING;
        return;
    }
    list_remove(&request->in_waiting);
    request->state = verdict == HOLDERS_ALLOWED ? ADMISSION_GRANTED : ADMISSION_REFUSED;
    request->on_decided(request->data);
}

static void admission_end_search(struct admission *admission)
{
    struct admission_request *request;
    struct admission_request *following;

    list_for_each_safe(request, following, &admission->waiting, in_waiting)
        if (request->state == ADMISSION_SEARCHING)
            admission_decide(request, socket_holders_verdict(admission->search, request->inode));
    socket_holders_free(admission->search);
    admission->search = NULL;
}

/* A search for all that wait, if any do. */
static void admission_begin_search(struct admission *admission)
{
    AUTO_FREE uint32_t *inodes = NULL;
    struct admission_request *request;
    size_t cap = 0;
    size_t len = 0;

    list_for_each(request, &admission->waiting, in_waiting) {
        inodes = alloc_grow(inodes, len, &cap, sizeof *inodes);
        inodes[len++] = request->inode;
        request->state = ADMISSION_SEARCHING;
    }
    if (len)
        admission->search = socket_holders_new(inodes, len);
}

static void admission_on_timer(void *data)
{
    struct admission *admission = data;

    if (admission->search && socket_holders_step(admission->search))
        admission_end_search(admission);
    if (!admission->search)
        admission_begin_search(admission);
    if (admission->search)
        loop_timer_start(admission->timer, 0);
}

void admission_init(struct admission *admission, struct loop *loop)
{
    *admission = (struct admission){.timer = loop_timer_new(loop, admission_on_timer, admission)};
}

void admission_done(struct admission *admission)
{
    socket_holders_free(admission->search);
    loop_timer_free(admission->timer);
    *admission = (struct admission){0};
}

void admission_ask(struct admission *admission, struct admission_request *request, int fd)
{
    uid_t uid;

    request->state = ADMISSION_REFUSED;
    if (!tcp_peer_lookup(fd, &uid, &request->inode))
        return;
    if (uid == 0 && geteuid() != 0) {
        request->state = ADMISSION_GRANTED;
    } else if (uid == geteuid()) {
        request->state = ADMISSION_WAITING;
        list_append(&admission->waiting, &request->in_waiting);
        if (!admission->search)
            loop_timer_start(admission->timer, 0);
    }
}

void admission_withdraw(struct admission_request *request)
{
    list_remove(&request->in_waiting);
}

bool admission_allows_unix(int fd, char *ret_name, size_t size)
{
    struct ucred peer;
    socklen_t len = sizeof peer;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) ||
        (peer.uid != geteuid() && peer.uid != 0) || is_sandboxed_pid(peer.pid))
        return false;
    snprintf(ret_name, size, "unix:uid=%u,pid=%d", peer.uid, peer.pid);
    return true;
}
