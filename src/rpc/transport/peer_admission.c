/* Unless a token is enough (auth.h), the processes that are let in are those that could do by
 * themselves what we do for them: this user's and root's, and no command of Cordon's, which could
 * leave its sandbox by starting another one. A process that cannot be identified is refused. (Of
 * root's processes others cannot see what is open.)
 *
 * A Unix socket says which process connected. TCP does not; but both ends of a connection within a
 * host are sockets of its kernel, which can be asked for the other one (sock_diag(7)): its user,
 * and its inode number. To find the processes that have that inode open takes a search of all of
 * them, which is made in small steps, one in a round of the loop, so that connected clients go on
 * meanwhile. However many wait, one search serves them all: those that were there when it began. The
 * others wait for the next one. A socket that could not be found is searched for once more, since a
 * process may hand its connection on to another, as servers and their workers do.
 *
 * A request may be withdrawn while it waits; the search goes by inodes and knows nothing of it.
 *
 * In a search of /proc, processes come in the order of their numbers, and what each has open in the
 * order of descriptors; the two positions are all that a step leaves to the next one. Steps are
 * counted in system calls, because the number of a process's descriptors is not known beforehand.
 *
 * Between two steps everything may change: processes begin and end, numbers are used again,
 * descriptors are handed on. Therefore what counts is what is so at the end:
 *
 * - Permission to connect rests on one thing alone: a process that is not sandboxed has the socket
 *   open. The first such process is remembered, and when all of /proc was seen it is checked again,
 *   in one step: its directory is opened, its ancestors are followed, and then the descriptor is
 *   read once more by that directory, which shows nothing when the process has ended, even if
 *   another one has its number by now. So it is one process that is not sandboxed and has the
 *   socket open.
 * - That no sandboxed process was seen to have it open, too, is a second condition, which no search
 *   of /proc can make certain, however fast: a command that wants to can keep its descriptor in the
 *   queue of a socket pair, where it is in no process's table. To hand it to a process that was
 *   seen already, or to fork one, is no better a way to hide. What is gained so is nothing: the
 *   socket is not found then unless it is open in a process that is not sandboxed. Forking alone
 *   does not hide anything, because new processes get higher numbers; to come to lower ones takes
 *   as many forks as there are numbers.
 *
 * No process is left out because of its user or its name: any process that has the socket open
 * counts. Two kinds are empty by themselves: threads of the kernel, and those that may not be
 * inspected. When something else is in the way (no more descriptors), no peer is let in. A command
 * may have very many descriptors open, and a search takes long then; it holds up only the peers
 * that wait for it.
 *
 * Whether a process is sandboxed shows in its parents, which are read from /proc one after the
 * other. What a command leaves behind is adopted by its init, which is a child of the process that
 * started the command, so a chain cannot be cut from below. The first process, or one outside of
 * our pid namespace (0), has no parent here. A launcher is known by its argv[0], which no command
 * can change: it neither traces its init nor may it be another process's parent. Commands of
 * another Cordon count, too, because to be served here would let them out of their sandbox just the
 * same. So does the guard of any: what is connected to by path is connected to by it, for a command; and the proxy, which leads to a port of the host that a command was given. */
#include "rpc/transport/peer_admission.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/proc.h"
#include "loop/loop.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* asm-generic/socket.h of Linux 6.5 */
#endif

enum {
    SEARCHES_MAX = 2,
    STEP_CALLS = 12, /* of the system in one step, at about two microseconds */
    STEP_JUDGED = 8, /* sockets of one process */
    DIR_BYTES = 512, /* read at once: 20 names, each of which is made on the fly */
    DEPTH_MAX = 4096,
    OWN_PARENTS_MAX = 64,
};

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

/* `fd`: our end, connected. false when no process has the other end open any more, when it is not
 * on this host, or when the kernel does not tell. The inode is never 0. The kernel answers within
 * the call that asks; where no connection fits it may find a listener. */
static bool tcp_peer_lookup(int fd, uid_t *ret_uid, uint32_t *ret_inode)
{
    AUTO_CLOSE int diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    struct question question;
    struct reply reply;

    if (diag < 0 || !question_init(&question, fd) ||
        send(diag, &question, sizeof question, 0) != (ssize_t)sizeof question ||
        recv(diag, &reply, sizeof reply, MSG_DONTWAIT) < (ssize_t)NLMSG_LENGTH(sizeof reply.body) ||
        reply.head.nlmsg_type != SOCK_DIAG_BY_FAMILY || reply.body.idiag_state == TCP_LISTEN ||
        reply.body.id.idiag_sport != question.body.id.idiag_sport ||
        reply.body.id.idiag_dport != question.body.id.idiag_dport || !reply.body.idiag_inode)
        return false;
    *ret_uid = reply.body.idiag_uid;
    *ret_inode = reply.body.idiag_inode;
    return true;
}

/* --- one search of /proc --- */

enum finding {
    UNSEEN,
    SEEN, /* in the process `pid`, no command */
    CONFIRMED,
    IN_SANDBOX,
};

struct wanted {
    uint32_t inode;
    enum finding finding;
    pid_t pid;
    int fd; /* in that process */
};

struct dir {
    int fd; /* -1: closed */
    size_t at;
    size_t len;
    _Alignas(struct dirent64) char bytes[DIR_BYTES];
};

enum kind { UNKNOWN, SANDBOXED, OTHER };

struct socket_holders {
    struct wanted *wanted; /* by inode */
    size_t len;
    size_t judged;        /* so many, when all processes were seen */
    int calls;            /* left in this step */
    struct dir processes; /* /proc; closed when all were seen */
    struct dir files;     /* what `pid` has open; closed between two processes */
    pid_t pid;
    enum kind kind; /* of `pid` */
    bool is_blind;  /* not everything that may be seen could be */
};

/* --- one process --- */

/* Of those that commands of any Cordon are below, or that connect in place of them. PLAN_LAUNCHER_NAME of
 * sandbox/launcher/plan_format.h, GUARD_PROGRAM of guard/guard_format.h, PROXY_PROGRAM of proxy/proxy_format.h. */
static bool is_of_commands(pid_t pid)
{
    static const char *const names[] = {"cordon-init", "cordon-guard", "cordon-proxy"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (proc_is_named(pid, names[i]))
            return true;
    return false;
}

/* `pid` (as seen from here) is a command of Cordon's, or was started by one at any depth: this
 * process is above it, or the launcher of any Cordon is; or it is a guard or proxy, which connect for commands. true also when that cannot be found out:
 * it has ended, or cannot be seen. What is above this process itself does not count (of that,
 * processes that are further away than any login shell do not matter). */
static bool is_sandboxed_pid(pid_t pid)
{
    pid_t self = getpid();
    pid_t above[OWN_PARENTS_MAX];
    size_t above_len = 0;

    for (pid_t at = getppid(); at > 0 && above_len < OWN_PARENTS_MAX; at = proc_parent(at))
        above[above_len++] = at;
    for (int i = 0; i < DEPTH_MAX && pid != self; i++) {
        if (pid == 0)
            return false;
        for (size_t k = 0; k < above_len; k++)
            if (above[k] == pid)
                return false;
        if (is_of_commands(pid))
            return true;
        pid = proc_parent(pid);
        if (pid < 0)
            return true;
    }
    return true;
}

/* --- the sockets --- */

static int wanted_compare(const void *left, const void *right)
{
    uint32_t a = ((const struct wanted *)left)->inode;
    uint32_t b = ((const struct wanted *)right)->inode;

    return (a > b) - (a < b);
}

static struct wanted *wanted_find(const struct socket_holders *holders, uint32_t inode)
{
    const struct wanted key = {.inode = inode};

    return bsearch(&key, holders->wanted, holders->len, sizeof key, wanted_compare);
}

/* --- directories --- */

static void dir_open(struct dir *dir, int at, const char *path)
{
    dir->fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dir->at = dir->len = 0;
}

static void dir_close(struct dir *dir)
{
    if (dir->fd >= 0)
        close(dir->fd);
    dir->fd = -1;
}

/* The next name that is a number; "" when there is none among those that one call gave; NULL at the
 * end. */
static const char *dir_next(struct dir *dir, int *calls)
{
    if (dir->at == dir->len) {
        ssize_t n = getdents64(dir->fd, dir->bytes, sizeof dir->bytes);

        --*calls;
        if (n <= 0)
            return NULL;
        dir->at = 0;
        dir->len = (size_t)n;
    }
    while (dir->at < dir->len) {
        const struct dirent64 *entry = (const void *)(dir->bytes + dir->at);

        dir->at += entry->d_reclen;
        if (isdigit((unsigned char)*entry->d_name))
            return entry->d_name;
    }
    return "";
}

/* The socket that a descriptor in /proc/PID/fd is; 0 for anything else. */
static uint32_t socket_inode(int dir, const char *name)
{
    static const char start[] = "socket:[";
    char target[32] = "";

    if (readlinkat(dir, name, target, sizeof target - 1) <= 0 ||
        strncmp(target, start, strlen(start)) != 0)
        return 0;
    return (uint32_t)strtoul(target + strlen(start), NULL, 10);
}

/* --- the search --- */

static void socket_holders_free(struct socket_holders *holders)
{
    if (!holders)
        return;
    dir_close(&holders->processes);
    dir_close(&holders->files);
    free(holders->wanted);
    free(holders);
}

static void holders_next_process(struct socket_holders *holders)
{
    const char *name = dir_next(&holders->processes, &holders->calls);
    char path[32];

    if (!name)
        dir_close(&holders->processes);
    if (!name || !*name)
        return;
    snprintf(path, sizeof path, "%.20s/fd", name);
    dir_open(&holders->files, holders->processes.fd, path);
    holders->calls--;
    holders->pid = (pid_t)strtol(name, NULL, 10);
    holders->kind = UNKNOWN;
    if (holders->files.fd < 0 && errno != ENOENT && errno != ESRCH && errno != EACCES &&
        errno != EPERM) /* neither ended nor closed to us */
        holders->is_blind = true;
}

/* The process has it open as the descriptor `name`. It may have ended since, and what is known of
 * its kind be of another one with its number: then it has nothing open any more. */
static void holders_note(struct socket_holders *holders, struct wanted *wanted, const char *name)
{
    if (holders->kind == UNKNOWN) {
        holders->kind = is_sandboxed_pid(holders->pid) ? SANDBOXED : OTHER;
        holders->calls = 0;
        if (socket_inode(holders->files.fd, name) != wanted->inode)
            return;
    }
    if (holders->kind == SANDBOXED) {
        wanted->finding = IN_SANDBOX;
    } else if (wanted->finding == UNSEEN) {
        wanted->finding = SEEN;
        wanted->pid = holders->pid;
        wanted->fd = (int)strtol(name, NULL, 10);
    }
}

static void holders_next_file(struct socket_holders *holders)
{
    const char *name = dir_next(&holders->files, &holders->calls);
    struct wanted *wanted;
    uint32_t inode;

    holders->calls--;
    if (!name)
        dir_close(&holders->files);
    if (!name || !*name)
        return;
    inode = socket_inode(holders->files.fd, name);
    wanted = inode ? wanted_find(holders, inode) : NULL;
    if (wanted)
        holders_note(holders, wanted, name);
}

/* Asks a process again for those sockets that it was seen to have open. */
static void holders_check_again(const struct socket_holders *holders, size_t first)
{
    pid_t pid = holders->wanted[first].pid;
    int left = STEP_JUDGED;
    bool is_sandboxed;
    struct dir files;
    char text[32];

    snprintf(text, sizeof text, "/proc/%d/fd", (int)pid);
    dir_open(&files, AT_FDCWD, text);
    is_sandboxed = is_sandboxed_pid(pid);
    for (size_t i = first; i < holders->len && left; i++) {
        struct wanted *wanted = &holders->wanted[i];

        if (wanted->finding != SEEN || wanted->pid != pid)
            continue;
        snprintf(text, sizeof text, "%d", wanted->fd);
        if (files.fd < 0 || socket_inode(files.fd, text) != wanted->inode)
            wanted->finding = UNSEEN;
        else
            wanted->finding = is_sandboxed ? IN_SANDBOX : CONFIRMED;
        left--;
    }
    dir_close(&files);
}

/* Goes on for a few dozen microseconds. true: the search is over. */
static bool socket_holders_step(struct socket_holders *holders)
{
    holders->calls = STEP_CALLS;
    while (holders->calls > 0 && (holders->files.fd >= 0 || holders->processes.fd >= 0)) {
        if (holders->files.fd >= 0)
            holders_next_file(holders);
        else
            holders_next_process(holders);
    }
    if (holders->calls <= 0)
        return false;
    while (holders->judged < holders->len && holders->wanted[holders->judged].finding != SEEN)
        holders->judged++;
    if (holders->judged < holders->len)
        holders_check_again(holders, holders->judged);
    return holders->judged == holders->len;
}

/* --- requests --- */

/* A descriptor that is only on its way from one process to another, or in a process that this one
 * cannot see, is not found. */
static void admission_decide(const struct socket_holders *search, struct admission_request *request)
{
    const struct wanted *wanted = wanted_find(search, request->inode);
    bool is_sandboxed = wanted && wanted->finding == IN_SANDBOX;
    bool is_allowed = wanted && wanted->finding == CONFIRMED && !search->is_blind;

    request->searches++;
    if (!is_sandboxed && !is_allowed && request->searches < SEARCHES_MAX) {
        request->state = ADMISSION_WAITING;
        return;
    }
    list_remove(&request->in_waiting);
    request->state = is_allowed                          ? ADMISSION_GRANTED
                     : search->is_blind && !is_sandboxed ? ADMISSION_BLIND
                                                         : ADMISSION_REFUSED;
    request->on_decided(request->data);
}

static void admission_end_search(struct admission *admission)
{
    struct admission_request *request;
    struct admission_request *following;

    list_for_each_safe(request, following, &admission->waiting, in_waiting)
        if (request->state == ADMISSION_SEARCHING)
            admission_decide(admission->search, request);
    socket_holders_free(admission->search);
    admission->search = NULL;
}

/* A search for all that wait, if any do. */
static void admission_begin_search(struct admission *admission)
{
    struct socket_holders *search = alloc_zero(1, sizeof *search);
    struct admission_request *request;
    size_t cap = 0;

    list_for_each(request, &admission->waiting, in_waiting) {
        search->wanted = alloc_grow(search->wanted, search->len, &cap, sizeof *search->wanted);
        search->wanted[search->len++] = (struct wanted){.inode = request->inode};
        request->state = ADMISSION_SEARCHING;
    }
    if (!search->len) {
        free(search);
        return;
    }
    qsort(search->wanted, search->len, sizeof *search->wanted, wanted_compare);
    search->files.fd = -1;
    dir_open(&search->processes, AT_FDCWD, "/proc");
    search->is_blind = search->processes.fd < 0;
    admission->search = search;
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

    errno = 0;
    if (!tcp_peer_lookup(fd, &uid, &request->inode)) {
        request->state = errno == EMFILE || errno == ENFILE ? ADMISSION_BLIND : ADMISSION_REFUSED;
        return;
    }
    request->state = ADMISSION_REFUSED;
    if (uid != geteuid())
        return;
    request->state = ADMISSION_WAITING;
    list_append(&admission->waiting, &request->in_waiting);
    if (!admission->search)
        loop_timer_start(admission->timer, 0);
}

void admission_withdraw(struct admission_request *request)
{
    list_remove(&request->in_waiting);
}

/* Before Linux 6.5 there is only the number (docs/threat-model.md). */
static bool has_ended(int pidfd)
{
    struct pollfd end = {.fd = pidfd, .events = POLLIN};

    return pidfd >= 0 && poll(&end, 1, 0) != 0;
}

bool admission_allows_unix(int fd, char *ret_name, size_t size)
{
    AUTO_CLOSE int pidfd = -1;
    struct ucred peer;
    socklen_t len = sizeof peer;
    socklen_t pidfd_len = sizeof pidfd;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) ||
        (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &pidfd_len) && errno != ENOPROTOOPT) ||
        (peer.uid != geteuid() && peer.uid != 0) || peer.pid <= 0 || is_sandboxed_pid(peer.pid) ||
        has_ended(pidfd))
        return false;
    snprintf(ret_name, size, "unix:uid=%u,pid=%d", peer.uid, peer.pid);
    return true;
}
