/* Attacks on the network: reach a service that the harness runs on the host, by every kind of
 * socket and every way to make or get one. A service that is reached receives the word "attack". */
#include "attack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

static const char word[] = "attack";

static int send_word(int fd, const char *what)
{
    return judge(send(fd, word, sizeof word - 1, MSG_NOSIGNAL), what);
}

static struct sockaddr_in loopback(const char *port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)number(port)),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* "@name" is an abstract address, anything else a path. */
static socklen_t unix_address(const char *text, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t len = strlen(text);
    if (len >= sizeof ret->sun_path) {
        fprintf(stderr, "attacks: socket path too long\n");
        exit(2);
    }
    memcpy(ret->sun_path, text, len);
    if (text[0] == '@')
        ret->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (text[0] != '@'));
}

static int reach_inet(int type, int protocol, const char *port)
{
    struct sockaddr_in to = loopback(port);
    int fd = socket(AF_INET, type, protocol);
    if (fd < 0)
        return lost("socket");
    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
        return lost("connect");
    return send_word(fd, "send");
}

static int run_tcp(int argc, char **argv)
{
    (void)argc;
    return reach_inet(SOCK_STREAM, 0, argv[0]);
}

static int run_udp(int argc, char **argv)
{
    (void)argc;
    return reach_inet(SOCK_DGRAM, 0, argv[0]);
}

/* Landlock's TCP rules know nothing of MPTCP sockets. */
static int run_mptcp(int argc, char **argv)
{
    (void)argc;
    return reach_inet(SOCK_STREAM, IPPROTO_MPTCP, argv[0]);
}

/* Nor of a connection that sendto(2) makes. */
static int run_fastopen(int argc, char **argv)
{
    (void)argc;
    struct sockaddr_in to = loopback(argv[0]);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0)
        return lost("socket");
    return judge(sendto(fd, word, sizeof word - 1, MSG_FASTOPEN | MSG_NOSIGNAL,
                        (struct sockaddr *)&to, sizeof to),
                 "sendto with MSG_FASTOPEN");
}

static int run_tcp6(int argc, char **argv)
{
    (void)argc;
    struct sockaddr_in6 to = {.sin6_family = AF_INET6,
                              .sin6_port = htons((uint16_t)number(argv[0])),
                              .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    if (fd < 0)
        return lost("socket");
    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
        return lost("connect");
    return send_word(fd, "send");
}

static int reach_unix(int type, const char *address)
{
    struct sockaddr_un to;
    socklen_t len = unix_address(address, &to);
    int fd = socket(AF_UNIX, type, 0);
    if (fd < 0)
        return lost("socket");
    if (connect(fd, (struct sockaddr *)&to, len) < 0)
        return lost("connect");
    return send_word(fd, "send");
}

static int run_unix(int argc, char **argv)
{
    (void)argc;
    return reach_unix(SOCK_STREAM, argv[0]);
}

static int run_unix_dgram(int argc, char **argv)
{
    (void)argc;
    return reach_unix(SOCK_DGRAM, argv[0]);
}

static int run_unix_seqpacket(int argc, char **argv)
{
    (void)argc;
    return reach_unix(SOCK_SEQPACKET, argv[0]);
}

/* A datagram socketpair needs no socket(2), and its ends take any address. */
static int run_pair_sendto(int argc, char **argv)
{
    (void)argc;
    struct sockaddr_un to;
    socklen_t len = unix_address(argv[0], &to);
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0)
        return lost("socketpair");
    return judge(sendto(pair[0], word, sizeof word - 1, 0, (struct sockaddr *)&to, len), "sendto");
}

static int run_pair_connect(int argc, char **argv)
{
    (void)argc;
    struct sockaddr_un to;
    socklen_t len = unix_address(argv[0], &to);
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0)
        return lost("socketpair");
    if (connect(pair[0], (struct sockaddr *)&to, len) < 0)
        return lost("connect");
    return send_word(pair[0], "send");
}

static int run_netlink(int argc, char **argv)
{
    (void)argc;
    return judge(socket(AF_NETLINK, SOCK_RAW, (int)number(argv[0])), "netlink socket");
}

/* Asks for the one listener that has this port. */
static int run_diag(int argc, char **argv)
{
    (void)argc;
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 body;
    } ask = {.head = {.nlmsg_len = sizeof ask,
                      .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                      .nlmsg_flags = NLM_F_REQUEST},
             .body = {.sdiag_family = AF_INET,
                      .sdiag_protocol = IPPROTO_TCP,
                      .idiag_states = ~0u,
                      .id = {.idiag_sport = htons((uint16_t)number(argv[0])),
                             .idiag_src = {htonl(INADDR_LOOPBACK)},
                             .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}}};
    struct {
        struct nlmsghdr head;
        char body[4096];
    } answer;
    int diag = socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG);
    if (diag < 0 || send(diag, &ask, sizeof ask, 0) < 0)
        return lost("sock_diag");
    if (recv(diag, &answer, sizeof answer, 0) < (ssize_t)sizeof answer.head ||
        answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
        return lost("finding the listener");
    return won("finding the listener");
}

static int run_packet(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return judge(socket(AF_PACKET, SOCK_RAW, 0), "packet socket");
}

static int run_vsock(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return judge(socket(AF_VSOCK, SOCK_STREAM, 0), "vsock socket");
}

static int run_raw(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return judge(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), "raw socket");
}

/* listen PORT: a service of ours on the host's address; the harness comes to it. */
static int run_listen(int argc, char **argv)
{
    (void)argc;
    struct sockaddr_in at = loopback(argv[0]);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 1) < 0)
        return lost("listening");
    note("listening");
    int peer = accept(fd, NULL, NULL);
    return peer < 0 ? lost("accept") : send_word(peer, "send");
}

/* A socket of the caller's that was left open. */
static int run_fd_send(int argc, char **argv)
{
    (void)argc;
    return send_word((int)number(argv[0]), "send");
}

static int run_fd_accept(int argc, char **argv)
{
    (void)argc;
    int fd = accept((int)number(argv[0]), NULL, NULL);
    return fd < 0 ? lost("accept") : send_word(fd, "send");
}

/* fd-receive FD NAME: takes a folder from whoever is at the other end of the socket and makes a
 * file in it. */
static int run_fd_receive(int argc, char **argv)
{
    (void)argc;
    char byte;
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec io = {.iov_base = &byte, .iov_len = 1};
    struct msghdr msg = {.msg_iov = &io,
                         .msg_iovlen = 1,
                         .msg_control = control.space,
                         .msg_controllen = sizeof control.space};
    if (recvmsg((int)number(argv[0]), &msg, 0) < 0)
        return lost("recvmsg");
    struct cmsghdr *header = CMSG_FIRSTHDR(&msg);
    if (header == NULL || header->cmsg_type != SCM_RIGHTS)
        return lost("no descriptor came");
    int dir;
    memcpy(&dir, CMSG_DATA(header), sizeof dir);
    return judge(mkdirat(dir, argv[1], 0755), "mkdirat in the received folder");
}

#ifdef __x86_64__
/* A 32-bit system call, which a filter that looks at the number only takes for another one. */
static long call32(long nr, long a, void *b)
{
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(nr), "b"(a), "c"(b) : "memory");
    if (result < 0)
        errno = (int)-result;
    return result;
}

/* int80-unix PATH: connect by socketcall(2) of the i386 table (102: 1 socket, 3 connect). */
static int run_int80_unix(int argc, char **argv)
{
    (void)argc;
    struct low {
        uint32_t args[4];
        struct sockaddr_un to;
    } *low =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    if (low == MAP_FAILED)
        return lost("mmap");
    socklen_t len = unix_address(argv[0], &low->to);
    low->args[0] = AF_UNIX;
    low->args[1] = SOCK_STREAM;
    low->args[2] = 0;
    int fd = (int)call32(102, 1, low->args);
    if (fd < 0)
        return lost("i386 socket");
    low->args[0] = (uint32_t)fd;
    low->args[1] = (uint32_t)(uintptr_t)&low->to;
    low->args[2] = len;
    if (call32(102, 3, low->args) < 0)
        return lost("i386 connect");
    return judge(write(fd, word, sizeof word - 1), "write");
}

/* The i386 number of unshare(2) is 310, of mount(2) 21: any call by the other table will do. */
static int run_int80(int argc, char **argv)
{
    (void)argc;
    return judge(call32(number(argv[0]), 0, NULL), "i386 system call");
}

static int run_x32(int argc, char **argv)
{
    (void)argc;
    return judge(syscall(number(argv[0]) | 0x40000000), "x32 system call");
}
#endif

const struct attack network_attacks[] = {
    {"tcp", 1, run_tcp},
    {"udp", 1, run_udp},
    {"mptcp", 1, run_mptcp},
    {"fastopen", 1, run_fastopen},
    {"tcp6", 1, run_tcp6},
    {"unix", 1, run_unix},
    {"unix-dgram", 1, run_unix_dgram},
    {"unix-seqpacket", 1, run_unix_seqpacket},
    {"pair-sendto", 1, run_pair_sendto},
    {"pair-connect", 1, run_pair_connect},
    {"netlink", 1, run_netlink},
    {"diag", 1, run_diag},
    {"packet", 0, run_packet},
    {"vsock", 0, run_vsock},
    {"raw", 0, run_raw},
    {"listen", 1, run_listen},
    {"fd-send", 1, run_fd_send},
    {"fd-accept", 1, run_fd_accept},
    {"fd-receive", 2, run_fd_receive},
#ifdef __x86_64__
    {"int80-unix", 1, run_int80_unix},
    {"int80", 1, run_int80},
    {"x32", 1, run_x32},
#endif
    {NULL, 0, NULL},
};
